//! The head of a request that is not for the HTTP library, because its connection will carry bulk
//! data.

use std::collections::HashMap;

use axum::extract::Request;
use netaware_wire::preface::Attach;

use crate::names::Names;

/// What is needed of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
}

impl Head {
    /// `None` where the head is no head, is not complete, or is followed by bytes: nobody may send
    /// before the answer.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = request.parse(bytes).ok()? else { return None };
        if length != bytes.len() {
            return None;
        }
        let target = request.path?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let named = |header: &httparse::Header<'_>| {
            Some((header.name.to_ascii_lowercase(), str::from_utf8(header.value).ok()?.trim().to_owned()))
        };
        Some(Self {
            method: request.method?.to_owned(),
            path: path.to_owned(),
            query: pairs(query),
            headers: request.headers.iter().filter_map(named).collect(),
        })
    }

    /// Of a request that the HTTP library has read.
    pub(super) fn of(request: &Request) -> Self {
        let headers = request.headers().iter();
        Self {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: pairs(request.uri().query().unwrap_or_default()),
            headers: headers
                .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.trim().to_owned())))
                .collect(),
        }
    }

    /// The same without the path below which a reverse proxy shows this responder.
    pub(super) fn below(self, names: &Names) -> Self {
        Self { path: names.below_base(&self.path).to_owned(), ..self }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Of which session's test it is a stream.
    pub(super) fn attach(&self) -> Option<Attach> {
        attach_of(|name| self.query.get(name).map(String::as_str))
    }

    /// The key of a request for a WebSocket (RFC 6455 §4.2.1), if it is one.
    pub(super) fn websocket_key(&self) -> Option<&str> {
        let asks = |name: &str, word: &str| {
            let words = self.header(name).unwrap_or_default();
            words.split(',').any(|found| found.trim().eq_ignore_ascii_case(word))
        };
        let is_one = asks("upgrade", "websocket")
            && asks("connection", "upgrade")
            && self.header("sec-websocket-version") == Some("13");
        self.header("sec-websocket-key").filter(|key| is_one && key.len() == KEY_LENGTH)
    }
}

fn pairs(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// From `token=…&test=…&stream=…`.
pub(super) fn attach_of<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Attach> {
    Some(Attach {
        token: parameter("token")?.parse().ok()?,
        test: parameter("test")?.parse().ok()?,
        stream: parameter("stream")?.parse().ok()?,
    })
}

const MOST_HEADERS: usize = 64;
/// Sixteen bytes in base64.
const KEY_LENGTH: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    fn parse(line: &str, headers: &str) -> Option<Head> {
        Head::parse(format!("{line} HTTP/1.1\r\nHost: [::1]:14233\r\n{headers}\r\n").as_bytes())
    }

    #[test]
    fn a_stream_is_named_by_session_test_and_number() {
        let head = parse(&format!("GET /data/up?token={TOKEN}&test=7&stream=1"), "").unwrap();
        assert_eq!((&*head.method, &*head.path), ("GET", "/data/up"));
        let attach = head.attach().unwrap();
        assert_eq!((attach.token.to_string().as_str(), attach.test, attach.stream), (TOKEN, 7, 1));
        for query in ["token=12&test=7&stream=1", "test=7&stream=1", "token=x&test=-1&stream=70000", ""] {
            assert!(parse(&format!("GET /data/up?{query}"), "").unwrap().attach().is_none(), "{query}");
        }
    }

    #[test]
    fn bytes_behind_the_head_are_refused_and_an_incomplete_one_is_none() {
        assert!(Head::parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nx").is_none());
        assert!(Head::parse(b"GET / HTTP/1.1\r\nHost: a\r\n").is_none());
        assert!(Head::parse(b"GET\r\n\r\n").is_none());
        assert!(Head::parse(&[0xff; 40]).is_none());
    }

    #[test]
    fn a_websocket_is_asked_for_in_all_its_words() {
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let rest = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n";
        let head = parse("GET /data/up", &format!("{key}{rest}")).unwrap();
        assert_eq!(head.websocket_key(), Some("dGhlIHNhbXBsZSBub25jZQ=="));
        assert_eq!(parse("GET /data/up", key).unwrap().websocket_key(), None);
        assert_eq!(
            parse("GET /data/up", &format!("Sec-WebSocket-Key: x\r\n{rest}")).unwrap().websocket_key(),
            None
        );
    }
}

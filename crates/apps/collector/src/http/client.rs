//! As much of an HTTP client as `netaware collect plan` and `apply` need: one request, one connection, no encryption.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Where a collector answers.
#[derive(Debug, Clone)]
pub struct Client {
    host: String,
    port: u16,
    token: Option<String>,
}

/// What it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As in HTTP.
    pub status: u16,
    /// Text.
    pub body: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not an address of ours.
    #[error("'{0}' is no address of a collector; write it as in http://127.0.0.1:14234")]
    Address(String),
    /// The network's word.
    #[error("cannot ask the collector at {address}: {source}; does 'netaware collect run' run there?")]
    Connection {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something else answers there.
    #[error("what answers at {0} speaks no HTTP")]
    NotHttp(String),
}

const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST: u64 = 64 << 20;

impl Client {
    /// `http://HOST[:PORT]`.
    ///
    /// # Errors
    /// It is no such address.
    pub fn new(address: &str, token: Option<String>) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(address.to_owned());
        let rest = address.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (rest, netaware_wire::lmap::DEFAULT_PORT),
        };
        let host = host.trim_matches(['[', ']']);
        let fits = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        if fits { Ok(Self { host: host.to_owned(), port, token }) } else { Err(wrong()) }
    }

    /// Asks; `body` is sent as `application/toml`.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Result<Answer, ClientError> {
        let name = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let address = format!("{name}:{}", self.port);
        let failed = |source| ClientError::Connection { address: address.clone(), source };
        let token =
            self.token.as_ref().map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}Content-Type: application/toml\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = self.connect().map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut bytes = Vec::new();
        stream.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
        parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| ClientError::NotHttp(address.clone()))
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut failed = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// The answer, its body put together if it came in chunks (RFC 9112 §7.1).
fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let chunked = head.lines().any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked"));
    if !chunked {
        return Some(Answer { status, body: body.to_owned() });
    }
    let (mut whole, mut rest) = (String::new(), body);
    loop {
        let (length, after) = rest.split_once("\r\n")?;
        let length = usize::from_str_radix(length.split(';').next()?.trim(), 16).ok()?;
        if length == 0 {
            return Some(Answer { status, body: whole });
        }
        whole += after.get(..length)?;
        rest = after.get(length + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let read = |text: &str| Client::new(text, None).map(|client| (client.host, client.port)).ok();
        assert_eq!(read("http://localhost"), Some(("localhost".into(), 14234)));
        assert_eq!(read("http://[::1]:80/"), Some(("::1".into(), 80)));
        assert_eq!(read("http://[::1]"), Some(("::1".into(), 14234)));
        for wrong in ["localhost", "https://x", "http://", "http://a b", "http://x:y"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn answers_in_one_piece_and_in_chunks_are_the_same() {
        let whole = parse("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
        let chunks =
            parse("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
        assert_eq!(whole, Some(Answer { status: 200, body: "hello".into() }));
        assert_eq!(whole, chunks);
        assert_eq!(parse("SSH-2.0"), None);
    }
}

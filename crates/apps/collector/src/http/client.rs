//! As much of an HTTP client as `netaware collect plan` and `apply` need: one request, one
//! connection, plain or with TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use netaware_io::zone;
use netaware_tls::{Judge, Refusal, Trust, TrustError};
use rustls::StreamOwned;

/// Where a collector answers, and by what it is known.
#[derive(Debug, Clone)]
pub struct Client {
    host: String,
    port: u16,
    token: Option<String>,
    trust: Trust,
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
    #[error(
        "'{0}' is no address of a collector; write it as in http://127.0.0.1:14234 or https://collect.example"
    )]
    Address(String),
    /// Encrypted, and nothing says who may answer.
    #[error(
        "say by what the collector at '{0}' is known: give --ca FILE (who signed its certificate, or the certificate itself) or --fingerprint HEX"
    )]
    Stranger(String),
    /// There is something to know it by, and nothing that it could show.
    #[error(
        "'{0}' is not encrypted, so no certificate is shown there; write https://, or leave --ca and --fingerprint out"
    )]
    NothingShown(String),
    /// A file or text for TLS is of no use.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no encryption between us.
    #[error("no TLS with the collector at {address}: {why}")]
    Tls {
        /// Where.
        address: String,
        /// Why, and what to do.
        why: Refusal,
    },
    /// The network's word.
    #[error("cannot ask the collector at {address}: {source}; does 'netaware collect run' run there?")]
    Connection {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Something else answers there.
    #[error("what answers at {0} speaks no HTTP; if it speaks TLS write https://")]
    NotHttp(String),
}

const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST: u64 = 64 << 20;

/// A connection, encrypted or not.
trait Line: Read + Write {}
impl<T: Read + Write> Line for T {}

impl Client {
    /// `http://HOST[:PORT]` or `https://HOST[:PORT]`; what is encrypted is judged by `judge`, and
    /// only that.
    ///
    /// # Errors
    /// It is no such address, or it is encrypted and nothing says by what to know it, or the other
    /// way round.
    pub fn new(address: &str, token: Option<String>, judge: Option<Judge<'_>>) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(address.to_owned());
        let (scheme, rest) = address.split_once("://").ok_or_else(wrong)?;
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (rest, netaware_wire::lmap::DEFAULT_PORT),
        };
        let host = host.trim_matches(['[', ']']);
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
            return Err(wrong());
        }
        let trust = match (scheme, judge) {
            ("http", None) => Trust::Plain,
            ("http", Some(_)) => return Err(ClientError::NothingShown(address.to_owned())),
            ("https", Some(judge)) => Trust::tls(judge, None)?,
            ("https", None) => return Err(ClientError::Stranger(address.to_owned())),
            _ => return Err(wrong()),
        };
        Ok(Self { host: host.to_owned(), port, token, trust })
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
        let mut stream = self.encrypt(self.connect().map_err(failed)?, &address)?;
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(failed)?;
        let mut bytes = Vec::new();
        stream.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
        parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| ClientError::NotHttp(address.clone()))
    }

    /// The token goes nowhere before it is known who is there.
    fn encrypt(&self, mut tcp: TcpStream, address: &str) -> Result<Box<dyn Line>, ClientError> {
        let Some(mut connection) = self.trust.connection(&self.host)? else { return Ok(Box::new(tcp)) };
        while connection.is_handshaking() {
            if let Err(error) = connection.complete_io(&mut tcp) {
                let address = address.to_owned();
                return Err(match Refusal::of(&error) {
                    Some(why) => ClientError::Tls { address, why },
                    // Who knows nothing of TLS hangs up when it begins.
                    None if matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                    ) =>
                    {
                        ClientError::Tls { address, why: Refusal::Plain }
                    }
                    None => ClientError::Connection { address, source: error },
                });
            }
        }
        Ok(Box::new(StreamOwned::new(connection, tcp)))
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in zone::resolve(&self.host, self.port)? {
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
        let read = |text: &str| Client::new(text, None, None).map(|client| (client.host, client.port)).ok();
        assert_eq!(read("http://localhost"), Some(("localhost".into(), 14234)));
        assert_eq!(read("http://[::1]:80/"), Some(("::1".into(), 80)));
        assert_eq!(read("http://[::1]"), Some(("::1".into(), 14234)));
        for wrong in ["localhost", "https://x", "ftp://x", "http://", "http://a b", "http://x:y"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn who_answers_has_to_be_known_where_it_is_encrypted_and_only_there() {
        let judge = Judge::Fingerprint("00");
        let error = |text: &str, judge| Client::new(text, None, judge).unwrap_err().to_string();
        assert!(error("https://x", None).contains("--ca FILE"));
        assert!(error("http://x", Some(judge)).contains("write https://"));
        assert!(error("https://x", Some(judge)).contains("64 hexadecimal digits"));
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

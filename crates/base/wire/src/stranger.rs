//! Who answers on a port where netaware was expected.

/// Another program, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// A web server.
    Http,
    /// An SSH server.
    Ssh,
    /// A TLS server's alert or handshake.
    Tls,
    /// A mail or FTP server's greeting.
    Greeting,
    /// An iperf3 server: it takes 37 bytes as its cookie and answers one state byte.
    Iperf3,
    /// Closed or reset the connection without a word.
    Silent,
    /// Anything else.
    Unknown,
}

/// Looks at what came instead of a preface; `bytes` may be empty or cut off.
pub fn identify(bytes: &[u8]) -> Stranger {
    match bytes {
        [] => Stranger::Silent,
        [b'H', b'T', b'T', b'P', ..] | [b'<', ..] => Stranger::Http,
        [b'S', b'S', b'H', b'-', ..] => Stranger::Ssh,
        [0x15 | 0x16, 3, ..] => Stranger::Tls,
        [b'2', b'0' | b'2', b'0', b' ' | b'-', ..] => Stranger::Greeting,
        // PARAM_EXCHANGE, or ACCESS_DENIED while it is busy with somebody else.
        [9 | 0xff] => Stranger::Iperf3,
        _ => Stranger::Unknown,
    }
}

impl Stranger {
    /// For the middle of a sentence: "… answered as an SSH server".
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "a web server",
            Self::Ssh => "an SSH server",
            Self::Tls => "a TLS server",
            Self::Greeting => "a mail or FTP server",
            Self::Iperf3 => "an iperf3 server",
            Self::Silent => "a program that closes without a word",
            Self::Unknown => "a program that is not netaware",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_servers_are_recognised() {
        let rows: &[(&[u8], Stranger)] = &[
            (b"HTTP/1.1 400 Bad Request", Stranger::Http),
            (b"SSH-2.0-OpenSSH_9.2", Stranger::Ssh),
            (&[0x15, 3, 1, 0, 2], Stranger::Tls),
            (b"220 mail ready", Stranger::Greeting),
            (&[9], Stranger::Iperf3),
            (b"", Stranger::Silent),
            (b"NETAW", Stranger::Unknown),
        ];
        for (bytes, want) in rows {
            assert_eq!(identify(bytes), *want);
        }
    }
}

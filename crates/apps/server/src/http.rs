//! What a web browser is told that finds its way here.

/// Whether `bytes`, however few, can still become an HTTP/1 request.
pub(crate) fn may_start_with(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| {
        let known = bytes.len().min(method.len());
        bytes[..known] == method.as_bytes()[..known]
    })
}

/// Whether `bytes` surely are one.
pub(crate) fn starts(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.starts_with(method.as_bytes()))
}

/// Whether the head of the request is complete.
pub(crate) fn head_is_complete(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|window| window == b"\r\n\r\n") || bytes.windows(2).any(|window| window == b"\n\n")
}

/// The whole response.
pub(crate) fn answer(request: &[u8], port: u16) -> String {
    let port = if port == netaware_wire::DEFAULT_PORT { String::new() } else { format!(" --port {port}") };
    let body = format!(
        "This is a netaware responder. It measures the path between you and this host.\n\
         \n\
         Install netaware, then run:\n\
         \n    netaware test <this host>{port}\n"
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if request.starts_with(b"HEAD ") { head } else { head + &body }
}

const METHODS: &[&str] = &["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH "];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_other_protocols_as_early_as_can_be() {
        for (bytes, may, does) in [
            (&b""[..], true, false),
            (b"G", true, false),
            (b"GET ", true, true),
            (b"P", true, false),
            (b"NET", false, false),
            (b"\x16\x03", false, false),
            (b"GETTY", false, false),
        ] {
            assert_eq!((may_start_with(bytes), starts(bytes)), (may, does), "{bytes:?}");
        }
    }

    #[test]
    fn the_length_is_the_bodys_and_head_gets_no_body() {
        let answer_to_get = answer(b"GET / HTTP/1.1", 14233);
        let (head, body) = answer_to_get.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(!body.contains("--port"));
        assert!(answer(b"GET /", 5).contains("--port 5"));
        assert!(answer(b"HEAD /", 1).ends_with("\r\n\r\n"));
    }
}

//! Whether the first bytes of a connection are HTTP.

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
}

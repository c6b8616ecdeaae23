//! When a blocking call of a socket has returned only to let its caller look at the clock.

use std::io::{Error, ErrorKind};

/// Whether a call only had to wait for too long, or a signal came. `ETIMEDOUT` is not among these:
/// with it the connection is dead. Windows has no other word for a call that waited in vain.
pub fn is_timeout(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => true,
        ErrorKind::TimedOut => cfg!(windows),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_connection_is_not_a_call_that_waited() {
        let said = |kind: ErrorKind| is_timeout(&kind.into());
        assert!(said(ErrorKind::WouldBlock) && said(ErrorKind::Interrupted));
        assert_eq!(said(ErrorKind::TimedOut), cfg!(windows));
        assert!(!said(ErrorKind::ConnectionReset));
    }
}

//! What `netaware run` was told, from the variable that it leaves: "race,prefer=4,verbose".

use std::sync::OnceLock;

use netaware_record::IpVersion;

/// How to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Tried first; else what the program asks for.
    pub(crate) prefer: Option<IpVersion>,
    /// Tried alone.
    pub(crate) only: Option<IpVersion>,
    /// Tell of each connection.
    pub(crate) verbose: bool,
}

/// `None` is to leave everything alone.
pub(crate) fn present() -> Option<Order> {
    static ORDER: OnceLock<Option<Order>> = OnceLock::new();
    *ORDER.get_or_init(|| parse(&std::env::var("NETAWARE_RUN").ok()?))
}

/// Words of a later version are passed over.
fn parse(text: &str) -> Option<Order> {
    let mut words = text.split(',');
    if words.next() != Some("race") {
        return None;
    }
    let mut order = Order { prefer: None, only: None, verbose: false };
    for word in words {
        match word.split_once('=') {
            Some(("prefer", digit)) => order.prefer = version(digit),
            Some(("only", digit)) => order.only = version(digit),
            None if word == "verbose" => order.verbose = true,
            _ => {}
        }
    }
    Some(order)
}

fn version(digit: &str) -> Option<IpVersion> {
    match digit {
        "4" => Some(IpVersion::V4),
        "6" => Some(IpVersion::V6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_unknown_words_passed_over() {
        assert_eq!(parse("race"), Some(Order { prefer: None, only: None, verbose: false }));
        let order = parse("race,prefer=4,dance,verbose").unwrap();
        assert_eq!((order.prefer, order.only, order.verbose), (Some(IpVersion::V4), None, true));
        assert_eq!(parse("race,only=6").unwrap().only, Some(IpVersion::V6));
        assert_eq!(parse(""), None);
        assert_eq!(parse("verbose"), None);
    }
}

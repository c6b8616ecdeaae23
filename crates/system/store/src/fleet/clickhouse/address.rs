//! `clickhouse://[user[:password]@]host[:port]/database[?ca=FILE]`.

use std::path::PathBuf;

use crate::fleet::FleetError;

/// The environment variable with the password, so that it need not stand in a command line or a
/// file that others read.
const PASSWORD_VARIABLE: &str = "NETAWARE_CLICKHOUSE_PASSWORD";

/// Where a ClickHouse is and who we are to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// `http://host:port/`, without a user.
    pub(super) endpoint: String,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) database: String,
    /// Certificates that are trusted instead of the usual ones.
    pub(super) ca: Option<PathBuf>,
}

impl Address {
    pub(super) fn parse(place: &str) -> Result<Self, FleetError> {
        Self::parse_with(place, std::env::var(PASSWORD_VARIABLE).ok())
    }

    fn parse_with(place: &str, password: Option<String>) -> Result<Self, FleetError> {
        let wrong = |why| FleetError::Place { given: without_password(place), why };
        let (scheme, usual_port, rest) = if let Some(rest) = place.strip_prefix("clickhouse://") {
            ("http", 8123, rest)
        } else if let Some(rest) = place.strip_prefix("clickhouses://") {
            ("https", 8443, rest)
        } else {
            return Err(wrong("it begins with neither clickhouse:// nor clickhouses://"));
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (who_where, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place_of) = who_where.rsplit_once('@').map_or(("", who_where), |(who, host)| (who, host));
        let (user, in_url) =
            who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
        let (host, port) = host_and_port(place_of, usual_port)
            .ok_or_else(|| wrong("the host or the port makes no sense"))?;
        let database = if database.is_empty() { "netaware" } else { database };
        // It stands in statements as it is.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !database.chars().all(plain) || database.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong("a database has a name of letters, digits and _"));
        }
        let ca = match options.split_once('=') {
            None if options.is_empty() => None,
            Some(("ca", path)) if scheme == "https" => Some(PathBuf::from(decoded(path))),
            _ => return Err(wrong("the only option is ca=FILE, with clickhouses://")),
        };
        let user = if user.is_empty() { "default".to_owned() } else { decoded(user) };
        let password = in_url.map(decoded).or(password).unwrap_or_default();
        Ok(Self {
            endpoint: format!("{scheme}://{host}:{port}/"),
            user,
            password,
            database: database.into(),
            ca,
        })
    }

    /// For messages.
    pub(super) fn shown(&self) -> String {
        format!("{}{}", self.endpoint, self.database)
    }
}

/// The place with `***` for its password. Whatever is between the first colon after `//` and the
/// last `@` is no text for logs and files that others read.
pub(in crate::fleet) fn without_password(place: &str) -> String {
    let start = place.find("//").map_or(0, |at| at + 2);
    match (place[start..].find(':'), place.rfind('@')) {
        (Some(colon), Some(at)) if start + colon < at => {
            format!("{}:***{}", &place[..start + colon], &place[at..])
        }
        _ => place.to_owned(),
    }
}

/// The file of `?ca=FILE`.
pub(in crate::fleet) fn authority_of(place: &str) -> Option<PathBuf> {
    let (_, options) = place.split_once('?')?;
    options.strip_prefix("ca=").map(|path| PathBuf::from(decoded(path)))
}

fn host_and_port(text: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match text.rfind(']') {
        Some(end) => match text[end + 1..].strip_prefix(':') {
            Some(port) => (&text[..=end], port.parse().ok()?),
            None if end + 1 == text.len() => (text, usual),
            None => return None,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (text, usual),
        },
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    (!host.is_empty() && host.chars().all(plain) && port > 0).then(|| (host.to_owned(), port))
}

/// `%40` becomes `@`; what is no such pair stays.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let meant = digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *byte == b'%');
        out.push(meant.unwrap_or(*byte));
        at += if meant.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parsed = |place: &str| {
            let a = Address::parse_with(place, Some("env".into())).ok()?;
            let ca = a.ca.map(|path| path.display().to_string()).unwrap_or_default();
            Some([a.endpoint, a.user, a.password, a.database, ca].join(" "))
        };
        let table = [
            ("clickhouse://ch", Some("http://ch:8123/ default env netaware ")),
            ("clickhouse://ch:9/db", Some("http://ch:9/ default env db ")),
            ("clickhouse://me:p%40ss:w@[::1]:8124/x_1", Some("http://[::1]:8124/ me p@ss:w x_1 ")),
            ("clickhouses://me@ch/x?ca=/etc/a%20b.pem", Some("https://ch:8443/ me env x /etc/a b.pem")),
            ("clickhouse://ch/x?ca=/etc/ca.pem", None),
            ("clickhouse://", None),
            ("clickhouse://h:0/x", None),
            ("clickhouse://h:port/x", None),
            ("clickhouse://h/x;drop", None),
            ("clickhouse://h/1x", None),
            ("clickhouse://a b/x", None),
            ("http://h/x", None),
        ];
        for (place, want) in table {
            assert_eq!(parsed(place).as_deref(), want, "{place}");
        }
    }

    #[test]
    fn passwords_stay_out_of_errors() {
        let error = Address::parse("clickhouse://me:secret@h:port/x").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("me:***@h"), "{error}");
        assert!(!Address::parse("clickhouse://me:secret@h/x").unwrap().shown().contains("secret"));
    }

    #[test]
    fn a_neighbour_sees_no_password_in_a_place_that_is_shown() {
        let rows = [
            ("clickhouse://me:secret@ch:8123/db", "clickhouse://me:***@ch:8123/db"),
            ("clickhouses://me:se:cr@et@ch/db?ca=/a.pem", "clickhouses://me:***@ch/db?ca=/a.pem"),
            ("clickhouse://me:@ch/db", "clickhouse://me:***@ch/db"),
            ("clickhouse://me@ch:8123/db", "clickhouse://me@ch:8123/db"),
            ("clickhouse://ch:8123/db", "clickhouse://ch:8123/db"),
            ("/var/lib/a:b@c/fleet.db", "/var/lib/a:b@c/fleet.db"),
        ];
        for (place, shown) in rows {
            assert_eq!(crate::fleet::without_password(place), shown);
            assert_eq!(crate::fleet::without_password(shown), shown, "a second time changes nothing");
        }
        let authority = crate::fleet::authority_of;
        assert_eq!(authority("clickhouses://me@ch/x?ca=/etc/a%20b.pem"), Some("/etc/a b.pem".into()));
        assert_eq!([authority("clickhouse://ch/x"), authority("/a?ca=b")], [None, None]);
    }
}

//! A line on stderr for each race, for `netaware run --verbose`.

use std::fmt::Write;
use std::net::SocketAddr;

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::order::Order;
use crate::race::{Attempt, Race};
use crate::system::write_to_stderr;

/// It is over; `seen` is since when nobody looked, where that is so.
pub(crate) fn ended(race: &Race, won: Option<usize>, seen: Option<Mono>) {
    if race.order.verbose {
        let mut line = head(&race.name, race.asked);
        for (number, attempt) in race.attempts.iter().enumerate() {
            let separator = if number == 0 { "" } else { ";" };
            let _ = write!(line, "{separator} {}", said(attempt, race.began_at, won == Some(number), seen));
        }
        line.push('\n');
        write_to_stderr(&line);
    }
}

/// The program's own attempt failed, and it knows.
pub(crate) fn left(race: &Race) {
    if race.order.verbose {
        let line = format!("{} failed; the program was told\n", head(&race.name, race.asked));
        write_to_stderr(&line);
    }
}

/// There is no address of the only version that may be used.
pub(crate) fn refused(order: Order, asked: SocketAddr, name: &str, only: IpVersion) {
    if order.verbose {
        let line =
            format!("{} {} refused: no address of {} is known\n", head(name, asked), asked.ip(), only.name());
        write_to_stderr(&line);
    }
}

fn head(name: &str, asked: SocketAddr) -> String {
    let name = if name.is_empty() { asked.ip().to_string() } else { name.to_owned() };
    format!("netaware: {name} port {}:", asked.port())
}

fn said(attempt: &Attempt, began_at: Mono, won: bool, seen: Option<Mono>) -> String {
    let mut text = format!("{} {}", IpVersion::of(attempt.ip).name(), attempt.ip);
    let after = |at: Mono| (at - began_at).or_zero().millis_f64();
    let done = match attempt.ended {
        Some((_, Ok(()))) if won && seen.is_some() => {
            let within = (clock::now() - began_at).max(Span::from_millis(1)).millis_f64();
            write!(text, " connected within {within:.0} ms")
        }
        Some((at, Ok(()))) if won => write!(text, " connected after {:.0} ms", after(at)),
        Some((at, Err(errno))) => {
            let why = std::io::Error::from_raw_os_error(errno).to_string();
            let why = why.split(" (os error").next().unwrap_or_default().to_lowercase();
            write!(text, " {why} after {:.0} ms", after(at))
        }
        _ => write!(text, " no answer"),
    };
    let _ = done;
    text
}

//! Flows of STAMP packets (RFC 8762) as tasks: period by period, until told to stop.

use std::net::SocketAddr;

use netaware_io::stamp::StampOptions;
use netaware_io::stamp::periods::{StampNames, run_periods};
use netaware_io::stop::StopFlag;
use netaware_io::zone;
use netaware_record::passive::{ClockExchanges, Row};
use netaware_units::Span;
use netaware_wire::lmap::What;

use super::{Finding, Finds};

/// Registered for STAMP and TWAMP (RFC 8762 §4).
const PORT: u16 = 862;

/// Sends the flow that `what` describes from the probe named `here`; where the target has both IP
/// versions and neither is asked for, one flow over each, one after the other in starting and both
/// at once after that.
///
/// # Errors
/// The target cannot be resolved, or packets not be sent.
pub fn flow(
    here: &str,
    what: &What,
    period: Span,
    stop: &StopFlag,
    finds: &mut Finds<'_>,
) -> Result<(), String> {
    let What::Stamp { target, interval_ns, length, peer, version } = what else {
        return Err("it is no flow of STAMP packets".to_owned());
    };
    let targets = resolve(target, *version)?;
    let names = StampNames {
        here: here.to_owned(),
        there: peer.clone().unwrap_or_else(|| target.clone()),
        period,
        same_clock: false,
    };
    let options = StampOptions {
        interval: Span(i64::try_from(*interval_ns).unwrap_or(i64::MAX)),
        length: usize::from(*length),
        ..StampOptions::new()
    };
    let (found, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let flows: Vec<_> = targets
            .iter()
            .map(|to| {
                let (found, names, options) = (found.clone(), &names, &options);
                scope.spawn(move || {
                    let run = run_periods(*to, options, names, stop, &mut |period| {
                        // Nobody listens any more when the task ends.
                        drop(found.send(period));
                    });
                    run.map(drop).map_err(|error| format!("{to}: {error}"))
                })
            })
            .collect();
        drop(found);
        for one in told {
            let exchanges = peer.clone().map(|with| ClockExchanges { with, tightest: one.tightest });
            let rows = one.rows.into_iter().map(|row| Row::Delay(Box::new(row)));
            finds(Finding { period: one.period, rows: rows.collect(), exchanges });
        }
        let ended =
            flows.into_iter().map(|flow| flow.join().unwrap_or_else(|_| Err("a flow panicked".into())));
        ended.collect::<Result<(), String>>()
    })
}

/// One address of each IP version that is wanted.
fn resolve(target: &str, version: Option<u8>) -> Result<Vec<SocketAddr>, String> {
    let cannot = |error: std::io::Error| format!("cannot resolve '{target}': {error}");
    let (host, port) = host_and_port(target);
    let found = zone::resolve(host, port).map_err(cannot)?;
    let first = |six: bool| found.iter().find(|address| address.is_ipv6() == six).copied();
    let chosen: Vec<SocketAddr> = match version {
        Some(4) => first(false).into_iter().collect(),
        Some(6) => first(true).into_iter().collect(),
        _ => first(false).into_iter().chain(first(true)).collect(),
    };
    if chosen.is_empty() {
        Err(format!("'{target}' has no address of the wanted IP version"))
    } else {
        Ok(chosen)
    }
}

/// A bare IPv6 address has colons and no port.
fn host_and_port(target: &str) -> (&str, u16) {
    let parts = target.rsplit_once(':').filter(|_| !zone::is_v6(target));
    match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (target, PORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_addresses_with_or_without_a_port() {
        let one = |target: &str, version| resolve(target, version).map(|found| found[0].to_string());
        assert_eq!(one("192.0.2.1", None).unwrap(), "192.0.2.1:862");
        assert_eq!(one("192.0.2.1:5000", Some(4)).unwrap(), "192.0.2.1:5000");
        assert_eq!(one("2001:db8::1", None).unwrap(), "[2001:db8::1]:862");
        assert_eq!(one("[2001:db8::1]:99", Some(6)).unwrap(), "[2001:db8::1]:99");
        assert!(one("192.0.2.1", Some(6)).unwrap_err().contains("IP version"));
    }
}

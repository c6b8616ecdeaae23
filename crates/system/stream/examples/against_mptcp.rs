//! A dual-stack stream and MPTCP (RFC 8684, the kernel's) on the same emulated path, by turns: goodput, and the longest wait of the
//! reader when the IP version is changed on request and when the one in use goes silent.
//!
//! `cargo run --release -p netaware-stream --example against_mptcp -- [rounds]`, as root. Each round makes each path anew. MPTCP has
//! one subflow for each IP version: with the IPv4 one as its backup, so that it uses one at a time as we do, and with both in use. A
//! change on request is a change of the backup flag at the sender (`ip mptcp endpoint change`, MP_PRIO).

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, LabOptions, Side, scenarios};
use netaware_record::IpVersion;
use netaware_stream::{DualListener, DualStream, Options};
use netaware_units::{Mono, Span};
use socket2::{Domain, Protocol, Socket, Type};

const PATH: &str = "about = \"both versions alike\"\n[[hop]]\nv4 = { rate = \"40Mbit/s\", delay = \"20ms\" }\n\
                    v6 = { rate = \"40Mbit/s\", delay = \"20ms\" }\n";
const PORT: u16 = 4447;
const LENGTH: Span = Span::from_secs(7);
const EVENT_AT: Span = Span::from_secs(3);
const WINDOW: u32 = 1 << 20;
const BLOCK: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Ours,
    /// IPv4 is the backup.
    MptcpOne,
    MptcpBoth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// From IPv6 to IPv4.
    Requested,
    /// IPv6 carries nothing more, without a word.
    Silent,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(5);
    let mut rows = Vec::new();
    for what in [What::Requested, What::Silent] {
        for system in [System::Ours, System::MptcpOne, System::MptcpBoth] {
            // With both in use there is nothing to request.
            if (what, system) != (What::Requested, System::MptcpBoth) {
                rows.push((what, system, Vec::new()));
            }
        }
    }
    for round in 1..=rounds {
        for (what, system, seen) in &mut rows {
            let (goodput, wait) = run(*system, *what)?;
            println!(
                "{round}: {what:?} {system:?}: {goodput:.1} Mbit/s, longest wait {:.0} ms",
                wait.millis_f64()
            );
            seen.push((goodput, wait.millis_f64()));
        }
    }
    println!("medians of {rounds}, least and most beside them:");
    for (what, system, seen) in rows {
        let goodput = spread(seen.iter().map(|it| it.0).collect());
        let wait = spread(seen.iter().map(|it| it.1).collect());
        println!("{what:?} {system:?}: {goodput} Mbit/s, longest wait {wait} ms");
    }
    Ok(())
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return "none".into() };
    format!("{:.1} ({first:.1}…{last:.1})", values[values.len() / 2])
}

/// Mbit/s, and the longest wait of the reader from what happened to the end.
fn run(system: System, what: What) -> Result<(f64, Span), Box<dyn std::error::Error>> {
    let scenario = scenarios::parse("against MPTCP", PATH.to_owned())?.scenario;
    let lab = Lab::up(&scenario, &LabOptions { prefix: "against".into(), ..LabOptions::default() })?;
    let seen = match system {
        System::Ours => ours(&lab, what)?,
        System::MptcpOne | System::MptcpBoth => mptcp(&lab, system, what)?,
    };
    lab.end()?;
    Ok(seen)
}

/// Off the emulator's core.
fn stay_off(lab: &Lab) -> io::Result<()> {
    let core = lab.state().core;
    let own = netaware_io::thread::allowed_cores().into_iter().find(|it| Some(*it) != core);
    own.map_or(Ok(()), netaware_io::thread::pin)
}

fn ours(lab: &Lab, what: What) -> io::Result<(f64, Span)> {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let options = Options { window: WINDOW, ..Options::default() };
    let listener = lab.within(Side::B, || {
        stay_off(lab)?;
        DualListener::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), options)
    })?;
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let sender = lab.within(Side::A, || {
        stay_off(lab)?;
        DualStream::connect_to("b", &addresses, options).map_err(io::Error::other)
    })?;
    let (reader, _) = listener.accept()?;
    while [&sender, &reader].iter().any(|end| end.status().v4.is_none() || end.status().v6.is_none()) {
        clock::sleep(Span::from_millis(5));
    }
    transfer(
        reader,
        sender.clone(),
        || sender.shutdown(Shutdown::Write),
        || match what {
            What::Requested => sender.switch(IpVersion::V4).map(drop).map_err(io::Error::other),
            What::Silent => silence(lab),
        },
    )
}

fn mptcp(lab: &Lab, system: System, what: What) -> io::Result<(f64, Span)> {
    let ip = |side, words: &[&str]| tool(lab, side, "ip", &[&["mptcp"], words].concat());
    let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(|ip| lab.address(Side::A, ip).to_string());
    for side in [Side::A, Side::B] {
        ip(side, &["limits", "set", "subflows", "2", "add_addr_accepted", "2"])?;
    }
    ip(Side::B, &["endpoint", "add", &lab.address(Side::B, IpVersion::V4).to_string(), "signal"])?;
    let backup: &[&str] = if system == System::MptcpOne { &["backup"] } else { &[] };
    ip(Side::A, &[&["endpoint", "add", &v4, "id", "1", "subflow"], backup].concat())?;
    ip(Side::A, &["endpoint", "add", &v6, "id", "2", "subflow"])?;
    let listener = lab.within(Side::B, || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::MPTCP))?;
        socket.set_only_v6(false)?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)).into())?;
        socket.listen(1)?;
        Ok(socket)
    })?;
    let to = SocketAddr::new(lab.address(Side::B, IpVersion::V6), PORT);
    let sender = lab.within(Side::A, || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::MPTCP))?;
        socket.connect(&to.into())?;
        Ok(TcpStream::from(socket))
    })?;
    let reader = TcpStream::from(listener.accept()?.0);
    let end = sender.try_clone()?;
    // The second subflow is joined once the first one is confirmed.
    transfer(
        reader,
        sender,
        || drop(end.shutdown(Shutdown::Write)),
        || match what {
            What::Requested => {
                ip(Side::A, &["endpoint", "change", "id", "1", "nobackup"])?;
                ip(Side::A, &["endpoint", "change", "id", "2", "backup"])
            }
            What::Silent => silence(lab),
        },
    )
}

fn silence(lab: &Lab) -> io::Result<()> {
    let rules = "table ip6 dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
    [Side::A, Side::B].into_iter().try_for_each(|side| tool(lab, side, "nft", &[rules]))
}

fn tool(lab: &Lab, side: Side, name: &str, words: &[&str]) -> io::Result<()> {
    let status = lab.command(side, name).args(words).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{name} {words:?}: {status}"))) }
}

/// Sends for [`LENGTH`] and lets `happen` in between.
fn transfer(
    mut reader: impl Read + Send,
    mut sender: impl Write + Send,
    end: impl FnOnce() + Send,
    happen: impl FnOnce() -> io::Result<()>,
) -> io::Result<(f64, Span)> {
    let began_at = clock::now();
    thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let (mut buffer, mut bytes, mut waits) = (vec![0; 64 * 1024], 0, Vec::new());
            let mut last: Mono = clock::now();
            loop {
                let count = reader.read(&mut buffer)?;
                if count == 0 {
                    return io::Result::Ok((bytes, waits, last));
                }
                let now = clock::now();
                waits.push((now, now - last));
                (last, bytes) = (now, bytes + count);
            }
        });
        let sending = scope.spawn(move || {
            let block = vec![0x5a; BLOCK];
            while clock::now() - began_at < LENGTH {
                sender.write_all(&block)?;
            }
            end();
            io::Result::Ok(())
        });
        clock::sleep_until(began_at + EVENT_AT);
        let happened_at = clock::now();
        happen()?;
        let lost = || io::Error::other("a thread panicked");
        sending.join().map_err(|_| lost())??;
        let (bytes, waits, last) = reading.join().map_err(|_| lost())??;
        let since = |(at, _): &&(Mono, Span)| *at >= happened_at;
        let longest = waits.iter().filter(since).map(|(_, wait)| *wait).max().unwrap_or(LENGTH);
        Ok((bytes as f64 * 8e3 / (last - began_at).nanos() as f64, longest))
    })
}

//! A dual-stack stream and MPTCP (RFC 8684, the kernel's) on the same emulated path, by turns:
//! goodput, and the longest wait of the reader when the IP version is changed on request, when the
//! one in use goes silent, and where the other one is twice as fast.
//!
//! `cargo run --release -p netaware-stream --example against_mptcp -- [rounds]`, as root. Each
//! round makes each path anew. MPTCP has one subflow for each IP version: with the one that it does
//! not begin with as its backup, so that it uses one at a time as we do, and with both in use. A
//! change on request is a change of the backup flag at the sender (`ip mptcp endpoint change`,
//! MP_PRIO). Nothing in the kernel makes that change because the backup would be faster: there our
//! policy for bulk has no counterpart.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, LabOptions, Side, scenarios};
use netaware_record::{IpVersion, Use};
use netaware_stream::{DualListener, DualStream, Event, Options, Rules};
use netaware_units::{Mono, Span};
use socket2::{Domain, Protocol, Socket, Type};

const PORT: u16 = 4447;
const WINDOW: u32 = 1 << 20;
const BLOCK: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Ours,
    /// The version that it does not begin with is the backup.
    MptcpOne,
    MptcpBoth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// From IPv6 to IPv4.
    Requested,
    /// IPv6 carries nothing more, without a word.
    Silent,
    /// Over IPv4 at first, and nobody says anything.
    TwiceAsFast,
}

impl What {
    /// Of IPv4 and IPv6, Mbit/s.
    fn rates(self) -> [u32; 2] {
        match self {
            Self::Requested | Self::Silent => [40, 40],
            Self::TwiceAsFast => [20, 40],
        }
    }

    fn first(self) -> IpVersion {
        match self {
            Self::Requested | Self::Silent => IpVersion::V6,
            Self::TwiceAsFast => IpVersion::V4,
        }
    }

    fn length(self) -> Span {
        match self {
            Self::Requested | Self::Silent => Span::from_secs(7),
            Self::TwiceAsFast => Span::from_secs(20),
        }
    }

    /// When it happens; waits count from then on.
    fn event_at(self) -> Span {
        match self {
            Self::Requested | Self::Silent => Span::from_secs(3),
            Self::TwiceAsFast => Span::from_secs(1),
        }
    }
}

struct Seen {
    /// Mbit/s.
    goodput: f64,
    /// The reader's longest, from what happened to the end.
    wait: Span,
    /// When it went over by itself, from the beginning.
    went_over: Option<Span>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(5);
    let mut rows = Vec::new();
    for what in [What::Requested, What::Silent, What::TwiceAsFast] {
        for system in [System::Ours, System::MptcpOne, System::MptcpBoth] {
            // With both in use there is nothing to request.
            if (what, system) != (What::Requested, System::MptcpBoth) {
                rows.push((what, system, Vec::new()));
            }
        }
    }
    for round in 1..=rounds {
        for (what, system, all) in &mut rows {
            let seen = run(*system, *what)?;
            println!(
                "{round}: {what:?} {system:?}: {:.1} Mbit/s, longest wait {:.0} ms, {}",
                seen.goodput,
                seen.wait.millis_f64(),
                seen.went_over.map_or("stayed".into(), |after| format!("went over after {after}"))
            );
            all.push(seen);
        }
    }
    println!("medians of {rounds}, least and most beside them:");
    for (what, system, all) in rows {
        let goodput = spread(all.iter().map(|it| it.goodput).collect());
        let wait = spread(all.iter().map(|it| it.wait.millis_f64()).collect());
        let over = spread(all.iter().filter_map(|it| it.went_over).map(Span::millis_f64).collect());
        println!("{what:?} {system:?}: {goodput} Mbit/s, longest wait {wait} ms, went over after {over} ms");
    }
    Ok(())
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return "none".into() };
    format!("{:.1} ({first:.1}…{last:.1})", values[values.len() / 2])
}

fn run(system: System, what: What) -> Result<Seen, Box<dyn std::error::Error>> {
    let [v4, v6] = what.rates().map(|rate| format!("{{ rate = \"{rate}Mbit/s\", delay = \"20ms\" }}"));
    let path = format!("about = \"a comparison\"\n[[hop]]\nv4 = {v4}\nv6 = {v6}\n");
    let scenario = scenarios::parse("against MPTCP", path)?.scenario;
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

fn ours(lab: &Lab, what: What) -> io::Result<Seen> {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let policy = (what == What::TwiceAsFast).then(|| Rules::of(Use::Bulk));
    let options = Options { window: WINDOW, preferred: what.first(), policy, ..Options::default() };
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
    let began_at = clock::now();
    let seen = transfer(
        what,
        reader,
        sender.clone(),
        || sender.shutdown(Shutdown::Write),
        || match what {
            What::Requested => sender.switch(IpVersion::V4).map(drop).map_err(io::Error::other),
            What::Silent => silence(lab),
            What::TwiceAsFast => Ok(()),
        },
    )?;
    let over = |event: &Event| matches!(event, Event::Turning { to: IpVersion::V6, .. });
    let went_over = sender.happened().into_iter().find(|it| what == What::TwiceAsFast && over(&it.event));
    Ok(Seen { went_over: went_over.map(|it| it.at - began_at), ..seen })
}

fn mptcp(lab: &Lab, system: System, what: What) -> io::Result<Seen> {
    let ip = |side, words: &[&str]| tool(lab, side, "ip", &[&["mptcp"], words].concat());
    for side in [Side::A, Side::B] {
        ip(side, &["limits", "set", "subflows", "2", "add_addr_accepted", "2"])?;
    }
    let second = what.first().other();
    ip(Side::B, &["endpoint", "add", &lab.address(Side::B, second).to_string(), "signal"])?;
    for (version, id) in [(IpVersion::V4, "1"), (IpVersion::V6, "2")] {
        let backup = system == System::MptcpOne && version == second;
        let flags: &[&str] = if backup { &["subflow", "backup"] } else { &["subflow"] };
        let address = lab.address(Side::A, version).to_string();
        ip(Side::A, &[&["endpoint", "add", &address, "id", id], flags].concat())?;
    }
    // One of both versions at either end: a socket of IPv4 alone gets no subflow of IPv6.
    let socket = || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::MPTCP))?;
        socket.set_only_v6(false)?;
        io::Result::Ok(socket)
    };
    let listener = lab.within(Side::B, || {
        let socket = socket()?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)).into())?;
        socket.listen(1)?;
        Ok(socket)
    })?;
    let to = match lab.address(Side::B, what.first()) {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let sender = lab.within(Side::A, || {
        let socket = socket()?;
        socket.connect(&SocketAddr::from((to, PORT)).into())?;
        Ok(TcpStream::from(socket))
    })?;
    let reader = TcpStream::from(listener.accept()?.0);
    let end = sender.try_clone()?;
    // The second subflow is joined once the first one is confirmed.
    transfer(
        what,
        reader,
        sender,
        || drop(end.shutdown(Shutdown::Write)),
        || match what {
            What::Requested => {
                ip(Side::A, &["endpoint", "change", "id", "1", "nobackup"])?;
                ip(Side::A, &["endpoint", "change", "id", "2", "backup"])
            }
            What::Silent => silence(lab),
            // There is nothing that would be told which one is faster.
            What::TwiceAsFast => Ok(()),
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

/// Sends for as long as it takes and lets `happen` in between.
fn transfer(
    what: What,
    mut reader: impl Read + Send,
    mut sender: impl Write + Send,
    end: impl FnOnce() + Send,
    happen: impl FnOnce() -> io::Result<()>,
) -> io::Result<Seen> {
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
            while clock::now() - began_at < what.length() {
                sender.write_all(&block)?;
            }
            end();
            io::Result::Ok(())
        });
        clock::sleep_until(began_at + what.event_at());
        let happened_at = clock::now();
        happen()?;
        let lost = || io::Error::other("a thread panicked");
        sending.join().map_err(|_| lost())??;
        let (bytes, waits, last) = reading.join().map_err(|_| lost())??;
        let since = |(at, _): &&(Mono, Span)| *at >= happened_at;
        let wait = waits.iter().filter(since).map(|(_, wait)| *wait).max().unwrap_or(what.length());
        let goodput = bytes as f64 * 8e3 / (last - began_at).nanos() as f64;
        Ok(Seen { goodput, wait, went_over: None })
    })
}

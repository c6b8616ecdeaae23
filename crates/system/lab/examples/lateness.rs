//! Prints how late an emulator hands packets over, and how many it carries: `lateness [SCENARIO] [SECONDS]`, as root, on a
//! machine where nothing else runs.
//!
//! It sends UDP of 1472 bytes at 100 Mbit/s from host A, then as many small datagrams as go, and compares what B counted
//! with what went in.

use std::io;
use std::net::UdpSocket;

use netaware_io::clock;
use netaware_io::pacer::{self, Pacer};
use netaware_lab::{Lab, LabOptions, Side, scenarios};
use netaware_record::IpVersion;
use netaware_units::Span;

/// The text of a path that adds nothing but 10 ms.
const WIRE: &str =
    "about = \"10 ms and room for everything\"\n[[hop]]\nrate = \"10Gbit/s\"\ndelay = \"10ms\"\n";
const PORT: u16 = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let loaded = match arguments.next() {
        Some(name) => scenarios::load(&name)?,
        None => scenarios::parse("wire", WIRE.to_owned())?,
    };
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    for (what, payload, gap_ps) in [
        ("100 Mbit/s of 1500 B", 1472, 120_000_000),
        ("150,000/s of 64 B", 36, 6_666_667),
        ("as fast as it goes, 64 B", 36, 0),
    ] {
        let options = LabOptions { prefix: "lateness".to_owned(), ..LabOptions::default() };
        let lab = Lab::up(&loaded.scenario, &options)?;
        let (sent, came, delay) = stream(&lab, payload, gap_ps, Span::from_secs(seconds))?;
        let report = lab.end()?;
        println!(
            "{what}: sent {:.0}/s, came {:.0}/s, one-way delay p50 {} p99 {}\n  {report}\n  {} taken after a wake-up, core {:?}, raised {}",
            sent as f64 / seconds as f64,
            came as f64 / seconds as f64,
            delay[0],
            delay[1],
            report.woken,
            report.core,
            report.raised,
        );
    }
    Ok(())
}

/// How many were sent and how many came, and the median and 99th percentile of the delay between the two sockets.
fn stream(lab: &Lab, payload: usize, gap_ps: u64, length: Span) -> io::Result<(u64, u64, [Span; 2])> {
    let [from, to] = [Side::A, Side::B].map(|side| lab.address(side, IpVersion::V4));
    let receiver = lab.within(Side::B, || UdpSocket::bind((to, PORT)))?;
    let sender = lab.within(Side::A, || UdpSocket::bind((from, 0)))?;
    sender.connect((to, PORT))?;
    receiver.set_read_timeout(Some(Span::from_millis(500).to_std()))?;
    let counted = std::thread::spawn(move || {
        let (mut buffer, mut delays) = ([0; 2048], Vec::new());
        while receiver.recv(&mut buffer).is_ok() {
            let sent_at = u64::from_be_bytes(*buffer.first_chunk().unwrap_or(&[0; 8]));
            delays.push(Span(clock::now().0.wrapping_sub(sent_at).cast_signed()));
        }
        delays.sort_unstable();
        delays
    });
    let mut bytes = vec![0; payload];
    let start = clock::now() + Span::from_millis(50);
    let mut pacer = Pacer::new(start, gap_ps);
    let mut sent = 0;
    while clock::now() < start + length {
        pacer::wait_until(pacer.due());
        pacer.advance();
        bytes[..8].copy_from_slice(&clock::now().0.to_be_bytes());
        sent += u64::from(sender.send(&bytes).is_ok());
    }
    let delays = counted.join().map_err(|_| io::Error::other("the receiver panicked"))?;
    let quantile = |per_cent: usize| delays.get(delays.len() * per_cent / 100).copied().unwrap_or_default();
    Ok((sent, delays.len() as u64, [quantile(50), quantile(99)]))
}

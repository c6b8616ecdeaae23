//! UDP ping-pong on one host: what a round trip costs the program, and what the kernel's stamps say
//! of it.
//!
//! ```text
//! cargo run --release -p netaware-io --example ping_pong -- \
//!     [application|kernel|driver] [rounds] [address]
//! ```
//!
//! `application` and `kernel` call the probe socket directly in a closed loop, both ends without or
//! with kernel stamps; `driver` (kernel stamps) runs an engine that sends the next request when the
//! answer has come. The other end is a second process (this program, with `reflect`), as with
//! `sockperf server`, beside which it is meant to be run: `sockperf ping-pong -m 64 --full-rtt`.

use std::net::{IpAddr, UdpSocket};
use std::process::{Command, Stdio};

use netaware_engine::{Engine, Input, Output, Tag};
use netaware_io::driver::AnswerWait;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_io::stop::StopFlag;
use netaware_io::{clock, driver};
use netaware_units::{ClockSource, Mono, Span};

const LENGTH: usize = 64;
const PATIENCE: Span = Span::from_secs(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |n: usize, default: &'static str| words.get(n).map_or(default, String::as_str).to_owned();
    if word(0, "") == "reflect" {
        reflect(word(1, "127.0.0.1").parse().expect("an IP address"), stamping_of(&word(2, "kernel")));
        return;
    }
    let way = word(0, "kernel");
    let rounds: usize = word(1, "100000").parse().expect("a number of rounds");
    let ip: IpAddr = word(2, "127.0.0.1").parse().expect("an IP address");
    let program = std::env::current_exe().expect("the path of this program");
    let mut other_end = Command::new(program)
        .args(["reflect", &ip.to_string(), &way])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second process");
    let port = read_port(&mut other_end);
    let socket = UdpSocket::bind((ip, 0)).expect("a socket");
    socket.connect((ip, port)).expect("the other end");
    let times = match way.as_str() {
        "driver" => driven(socket, rounds),
        way => closed_loop(socket, stamping_of(way), rounds),
    };
    other_end.kill().expect("our own child");
    other_end.wait().expect("our own child");
    times.print(&way);
}

fn stamping_of(way: &str) -> Stamping {
    if way == "application" { Stamping::Application } else { Stamping::Kernel }
}

fn read_port(other_end: &mut std::process::Child) -> u16 {
    use std::io::BufRead;
    let said = other_end.stdout.take().expect("piped");
    let mut line = String::new();
    std::io::BufReader::new(said).read_line(&mut line).expect("a line");
    line.trim().parse().expect("a port")
}

/// As a responder does it: an unconnected socket, TTL, the address asked answers.
fn reflect(ip: IpAddr, stamping: Stamping) {
    let any: IpAddr = if ip.is_ipv6() { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    let socket = ProbeSocket::new(UdpSocket::bind((any, 0)).expect("a socket"), stamping).expect("usable");
    println!("{}", socket.local_addr().expect("bound").port());
    let mut buf = [0; 2048];
    loop {
        if let Ok(Some(arrival)) = socket.receive(&mut buf, None) {
            let _ = socket.send_to(&buf[..arrival.len], arrival.from, arrival.to);
        }
    }
}

#[derive(Default)]
struct Times {
    application: Vec<Span>,
    kernel: Vec<Span>,
}

impl Times {
    fn print(mut self, way: &str) {
        for (name, times) in [("application", &mut self.application), ("kernel", &mut self.kernel)] {
            times.sort_unstable();
            let Some(last) = times.len().checked_sub(1) else { continue };
            let at = |part: f64| times[(last as f64 * part) as usize].micros_f64();
            println!(
                "{way:<11} {name:<11} n {:>7}  min {:6.2}  p50 {:6.2}  p90 {:6.2}  p99 {:6.2}  p99.9 {:7.2}  us",
                times.len(),
                at(0.0),
                at(0.5),
                at(0.9),
                at(0.99),
                at(0.999)
            );
        }
    }
}

fn closed_loop(socket: UdpSocket, stamping: Stamping, rounds: usize) -> Times {
    let socket = ProbeSocket::new(socket, stamping).expect("usable");
    let mut times = Times::default();
    let mut buf = [0; 2048];
    for _ in 0..rounds {
        let handed_at = clock::now();
        socket.send(&[0; LENGTH]).expect("room for one datagram");
        let answer = socket.receive(&mut buf, Some(handed_at + PATIENCE)).expect("a socket that works");
        let Some(answer) = answer else { continue };
        times.application.push(answer.seen_at.since(handed_at));
        for (_, tx) in socket.sent_stamps() {
            if (tx.by, answer.rx.by) == (ClockSource::Kernel, ClockSource::Kernel) {
                times.kernel.push(answer.rx.at.since(tx.at));
            }
        }
    }
    times
}

/// The next request leaves when the answer has come, or has been waited for in vain.
struct PingPong {
    rounds: Tag,
    sent: Tag,
    waiting: bool,
    handed_at: Mono,
    left_at: Option<Mono>,
    times: Times,
}

impl Engine for PingPong {
    type Event = ();

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        match input {
            Input::Handed { at, .. } => self.handed_at = at,
            Input::Sent { tx, .. } => self.left_at = (tx.by == ClockSource::Kernel).then_some(tx.at),
            Input::Datagram { rx, .. } if self.waiting => {
                self.waiting = false;
                self.times.application.push(now.since(self.handed_at));
                if let Some(left_at) = self.left_at.take() {
                    self.times.kernel.push(rx.at.since(left_at));
                }
            }
            _ if self.waiting && now.since(self.handed_at) > PATIENCE => self.waiting = false,
            _ => {}
        }
    }

    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<()> {
        if self.waiting {
            return Output::Wait(now + PATIENCE);
        }
        if self.sent == self.rounds {
            return Output::Done;
        }
        (self.waiting, self.handed_at, self.sent) = (true, now, self.sent + 1);
        out[..LENGTH].fill(0);
        Output::Send { len: LENGTH, tag: self.sent, due: now }
    }
}

fn driven(socket: UdpSocket, rounds: usize) -> Times {
    let socket = ProbeSocket::new(socket, Stamping::Kernel).expect("usable");
    let mut engine = PingPong {
        rounds: rounds as Tag,
        sent: 0,
        waiting: false,
        handed_at: Mono(0),
        left_at: None,
        times: Times::default(),
    };
    driver::run(&mut engine, &socket, AnswerWait::AwakeForSoonAnswers, &StopFlag::new(), &mut |()| {})
        .expect("a socket that works");
    engine.times
}

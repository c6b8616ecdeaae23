//! The quickest single sender there is on a veth pair: the kernel itself.
//!
//! A socket costs this kernel 3 to 4 us for each datagram, so that one sender gives a quarter of a
//! million packets/s. Here an XDP program is run on a frame again and again within the kernel
//! (`BPF_PROG_TEST_RUN` with live frames, Linux 5.18): it numbers the frame, waits for the time it
//! is due, and redirects it into the link, where it arrives as any other.
//!
//! Frames are addressed to another host's card, as on a mirror port: a capture takes them, the host
//! behind it does not.
#![expect(unsafe_code, reason = "the bpf system call has no safe wrapper")]

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use anyhow::{Context as _, Result};
use netaware_io::clock;
use netaware_netns::Pair;
use netaware_units::Span;

use super::traffic::{PORT, Sent};
use crate::shell::output;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Bytes of a frame without its checksum.
    pub(super) length: usize,
    /// Between two frames, ns; 0: none.
    pub(super) gap_ns: u32,
    pub(super) seconds: f64,
}

/// Sends into the pair's link from the left, to be seen on the right.
pub(super) fn send(pair: &Pair, stream: Stream) -> Result<Sent> {
    let (left, right) = (pair.left(), pair.right());
    // Frames that a program redirects into a veth are taken by the other end's NAPI, which it has
    // with this only.
    output(right.command("ethtool").args(["-K", right.device(), "gro", "on"]))?;
    let index = output(left.command("cat").arg(format!("/sys/class/net/{}/ifindex", left.device())))?;
    let index: i32 = index.trim().parse().context("number of the interface")?;
    let frame = frame(left.v6(), right.v6(), stream.length);
    let generate = move || -> io::Result<Sent> {
        let state = State::new()?;
        let program = load(&program(&state, index, stream))?;
        let start = clock::now();
        let mut turns = FIRST_TURNS;
        loop {
            let (before, began) = (turns, clock::now());
            run(&program, &frame, index, turns)?;
            let now = clock::now();
            let left = stream.seconds - (now - start).secs_f64();
            if left <= 0.0 {
                return Ok(Sent { packets: state.sent()?, seconds: (now - start).secs_f64() });
            }
            // A turn without a packet takes less than one with: rather a call more than a run that
            // does not end.
            let rate = f64::from(before) / (now - began).secs_f64().max(Span::from_micros(1).secs_f64());
            turns = (rate * left.max(0.05)) as u32;
        }
    };
    left.within(generate).context("the kernel's generator")
}

/// Turns of the first call, whose time tells how many there may be in the next.
const FIRST_TURNS: u32 = 1 << 16;
/// A sender that was held up makes good for so long, ns.
const CATCH_UP_NS: i32 = 100_000;
/// Frames that the kernel takes at once.
const BATCH: u32 = 64;

/// Ethernet, IPv6, UDP; the payload begins with a number that the program writes.
fn frame(from: Ipv6Addr, to: Ipv6Addr, length: usize) -> Vec<u8> {
    let payload = length.saturating_sub(PAYLOAD).max(8);
    let udp_length = (8 + payload) as u16;
    let mut frame = Vec::with_capacity(PAYLOAD + payload);
    // Locally administered, of nobody.
    frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend(udp_length.to_be_bytes());
    frame.extend([17, 64]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    for word in [PORT + 1, PORT, udp_length, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.resize(PAYLOAD + payload, 0);
    frame
}

/// Where the payload begins.
const PAYLOAD: usize = 14 + 40 + 8;

/// What the program remembers from frame to frame: how many it sent, and when the next is due.
struct State(OwnedFd);

impl State {
    const ARRAY: u32 = 2;

    fn new() -> io::Result<Self> {
        // `map_type`, `key_size`, `value_size`, `max_entries`.
        call(MAP_CREATE, &words(&[Self::ARRAY, 4, 16, 1])).map(Self)
    }

    fn sent(&self) -> io::Result<u64> {
        let (key, mut value) = (0_u32, [0_u64; 2]);
        let mut attributes = words(&[self.0.as_raw_fd() as u32, 0]);
        attributes.extend((&raw const key as u64).to_ne_bytes());
        attributes.extend((&raw mut value as u64).to_ne_bytes());
        attributes.extend(0_u64.to_ne_bytes());
        // SAFETY: key and value have the sizes that the map was made with, and outlive the call.
        let answer =
            unsafe { libc::syscall(libc::SYS_bpf, MAP_LOOKUP, attributes.as_ptr(), attributes.len()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(value[0]) }
    }
}

/// One instruction: code, target and source register, offset, constant (Linux `uapi/linux/bpf.h`).
fn op(code: u8, target: u8, source: u8, offset: i16, constant: i32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[0] = code;
    bytes[1] = source << 4 | target;
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&constant.to_ne_bytes());
    bytes
}

/// See the module. Register 6 is the context, 7 the state.
fn program(state: &State, index: i32, stream: Stream) -> Vec<[u8; 8]> {
    const MOVE: u8 = 0xbf;
    const SET: u8 = 0xb7;
    const ADD: u8 = 0x07;
    const LOAD_8: u8 = 0x79;
    const LOAD_4: u8 = 0x61;
    const STORE_8: u8 = 0x7b;
    const SET_4: u8 = 0x62;
    const CALL: u8 = 0x85;
    const END: u8 = 0x95;
    const LOOK_UP: i32 = 1;
    const NOW: i32 = 5;
    const REDIRECT: i32 = 23;
    let mut code = vec![
        op(MOVE, 6, 1, 0, 0),
        op(SET_4, 10, 0, -4, 0),
        // The map's number, in two words.
        op(0x18, 1, 1, 0, state.0.as_raw_fd()),
        op(0, 0, 0, 0, 0),
        op(MOVE, 2, 10, 0, 0),
        op(ADD, 2, 0, 0, -4),
        op(CALL, 0, 0, 0, LOOK_UP),
        // Never without a value, but the kernel wants to see that asked; 1 is XDP_DROP.
        op(0x55, 0, 0, 2, 0),
        op(SET, 0, 0, 0, 1),
        op(END, 0, 0, 0, 0),
        op(MOVE, 7, 0, 0, 0),
    ];
    if stream.gap_ns > 0 {
        code.extend([
            op(CALL, 0, 0, 0, NOW),
            op(LOAD_8, 1, 7, 8, 0),
            // Not due yet (now < due): dropped, which costs next to nothing.
            op(0x3d, 0, 1, 2, 0),
            op(SET, 0, 0, 0, 1),
            op(END, 0, 0, 0, 0),
            // due = max(due, now - CATCH_UP_NS) + gap
            op(ADD, 0, 0, 0, -CATCH_UP_NS),
            op(0x3d, 1, 0, 1, 0),
            op(MOVE, 1, 0, 0, 0),
            op(ADD, 1, 0, 0, stream.gap_ns as i32),
            op(STORE_8, 7, 1, 8, 0),
        ]);
    }
    code.extend([
        op(LOAD_8, 3, 7, 0, 0),
        op(ADD, 3, 0, 0, 1),
        op(STORE_8, 7, 3, 0, 0),
        // The number, where the frame is long enough for one, as the kernel wants to see asked too.
        op(LOAD_4, 1, 6, 0, 0),
        op(LOAD_4, 2, 6, 4, 0),
        op(MOVE, 4, 1, 0, 0),
        op(ADD, 4, 0, 0, PAYLOAD as i32 + 8),
        op(0x2d, 4, 2, 1, 0),
        op(STORE_8, 1, 3, PAYLOAD as i16, 0),
        op(SET, 1, 0, 0, index),
        op(SET, 2, 0, 0, 0),
        op(CALL, 0, 0, 0, REDIRECT),
        op(END, 0, 0, 0, 0),
    ]);
    code
}

fn load(program: &[[u8; 8]]) -> io::Result<OwnedFd> {
    const XDP: u32 = 6;
    let mut said = vec![0_u8; 1 << 16];
    let mut attributes = words(&[XDP, program.len() as u32]);
    attributes.extend((program.as_ptr() as u64).to_ne_bytes());
    attributes.extend((c"Apache-2.0".as_ptr() as u64).to_ne_bytes());
    // `log_level`, `log_size`, `log_buf`.
    attributes.extend(words(&[1, said.len() as u32]));
    attributes.extend((said.as_mut_ptr() as u64).to_ne_bytes());
    call(PROGRAM_LOAD, &attributes).map_err(|error| {
        let said = String::from_utf8_lossy(&said);
        io::Error::other(format!("{error}: {}", said.trim_end_matches('\0')))
    })
}

/// Shows the program so many frames.
fn run(program: &OwnedFd, frame: &[u8], index: i32, turns: u32) -> io::Result<()> {
    const LIVE_FRAMES: u32 = 2;
    // `struct xdp_md`: from where to where the frame reaches, and by which interface it came.
    let context = words(&[0, frame.len() as u32, 0, index as u32, 0, 0]);
    let mut attributes = words(&[program.as_raw_fd() as u32, 0, frame.len() as u32, 0]);
    attributes.extend((frame.as_ptr() as u64).to_ne_bytes());
    attributes.extend(0_u64.to_ne_bytes());
    attributes.extend(words(&[turns.max(1), 0, context.len() as u32, 0]));
    attributes.extend((context.as_ptr() as u64).to_ne_bytes());
    attributes.extend(0_u64.to_ne_bytes());
    attributes.extend(words(&[LIVE_FRAMES, 0, BATCH, 0]));
    // SAFETY: frame and context outlive the call, and their sizes are told.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, TEST_RUN, attributes.as_ptr(), attributes.len()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const PROGRAM_LOAD: libc::c_int = 5;
const TEST_RUN: libc::c_int = 10;

/// A call that makes something new.
fn call(command: libc::c_int, attributes: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: what the attributes point at outlives the call, by its callers.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this number, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as libc::c_int) })
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

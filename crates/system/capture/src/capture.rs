//! An interface, read live.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use netaware_units::{ClockSource, Span};
use netaware_wire::packet::{self, LinkType};

use crate::counts::Counts;
use crate::filter::{self, BpfInstruction, FilterError};
use crate::frame::Frame;
use crate::link_watch::{Change, LinkState, LinkWatch};
use crate::offload::Offloads;
use crate::options::{Direction, Merging, Options, Spread};
use crate::ring::{Ring, Shape};
use crate::slot::{Layout, Slot, TAG_ROOM};
use crate::socket::{Begin, PacketSocket};
use crate::tagged::TaggedFilter;
use crate::{FileSourceError, backlog};

/// Why a capture could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `CAP_NET_RAW` is missing.
    #[error("capturing on {0} needs root or CAP_NET_RAW (setcap cap_net_raw+ep on the program)")]
    Permission(String),
    /// No interface has this name.
    #[error("there is no interface '{0}'")]
    NoInterface(String),
    /// The filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Offloads that merge packets are on, and were not to be.
    #[error("{interface} merges packets ({}); switch that off: ethtool -K {interface} {}", names.join(", "), off(names))]
    Merging {
        /// Where.
        interface: String,
        /// Which, by ethtool's names.
        names: Vec<&'static str>,
    },
    /// The card's own stamps were asked for, and it gives none.
    #[error("{interface} does not stamp packets itself ({source}); {}", nic_remedy(source))]
    NoNicStamps {
        /// Where.
        interface: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused.
    #[error("could not capture on {interface}: {doing}: {source}")]
    System {
        /// Where.
        interface: String,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

fn nic_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM) => "switching that on needs root or CAP_NET_ADMIN",
        _ => "take the kernel's stamps, or a card for which 'ethtool -T' tells hardware-receive",
    }
}

/// Asks the card of an interface to stamp all that it receives, as far as it does not already.
/// Needs `CAP_NET_ADMIN` and lasts: captures that are opened later, without it, find the stamps
/// switched on.
///
/// # Errors
/// There is no such interface, or its card does not stamp.
pub fn stamp_by_nic(interface: &str) -> Result<(), OpenError> {
    let (socket, _) = open_socket(interface)?;
    socket
        .stamp_in_hardware(interface)
        .map_err(|source| OpenError::NoNicStamps { interface: interface.to_owned(), source })
}

fn off(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name} off")).collect::<Vec<_>>().join(" ")
}

/// Why reading cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("reading from {interface}: {source}")]
    System {
        /// Where.
        interface: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is damaged from here on.
    #[error(transparent)]
    File(#[from] FileSourceError),
}

/// A capture of an interface. Goes on while the interface is down, and when it is made anew under
/// the same name.
pub struct Capture {
    interface: String,
    socket: PacketSocket,
    ring: Ring,
    link: LinkType,
    tags: Option<TaggedFilter>,
    watch: LinkWatch,
    /// Number that the socket is bound to; `None` while there is no such interface.
    index: Option<i32>,
    /// As it was opened, for filters that come later.
    options: Options,
    /// Shares the interface with others, so it cannot be bound anew.
    shared: bool,
    /// Why it is of no use any more: another interface took the name, and it could not change over
    /// to that.
    lost: Option<io::Error>,
    /// Tells the interface's own losses: the only one, or the first of several.
    tells_interface: bool,
    state: LinkState,
    /// Drop counters of the interface and the backlogs at the last `counts`.
    told: (LinkState, Option<u64>),
    counts: Counts,
}

impl Capture {
    /// Begins.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let (mut capture, program) = Self::prepare(options)?;
        capture.filter(&program)?;
        capture.start(options.promiscuous)?;
        Ok(capture)
    }

    /// Begins `count` captures that share the packets of one interface, each with a ring of its
    /// own, for as many threads. Until all are there, none sees anything.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn open_several(options: &Options, count: usize, spread: Spread) -> Result<Vec<Self>, OpenError> {
        let mut group = None;
        let mut captures = Vec::with_capacity(count);
        for number in 0..count {
            let (mut capture, program) = Self::prepare(options)?;
            // Between `bind` and joining a socket would get what the others get as well.
            capture.filter(&filter::nothing())?;
            capture.start(options.promiscuous)?;
            let joined = capture.socket.share(group, spread_number(spread));
            group = Some(joined.map_err(|source| capture.refused("sharing (PACKET_FANOUT)", source))?);
            capture.shared = true;
            capture.tells_interface = number == 0;
            captures.push((capture, program));
        }
        captures.into_iter().map(|(capture, program)| capture.filter(&program).map(|()| capture)).collect()
    }

    /// Everything but the filter and the interface.
    fn prepare(options: &Options) -> Result<(Self, Vec<BpfInstruction>), OpenError> {
        let name = &options.interface;
        let refused = |doing| move |source| OpenError::System { interface: name.clone(), doing, source };
        let (socket, link) = open_socket(name)?;
        let offloads = Offloads::read(socket.as_fd(), name);
        let names = offloads.merging();
        if options.merging == Merging::Refuse && !names.is_empty() {
            return Err(OpenError::Merging { interface: name.clone(), names });
        }
        let (program, tags) = plan_filter(options, link)?;
        if options.stamps == ClockSource::Nic {
            socket
                .stamp_in_hardware(name)
                .map_err(|source| OpenError::NoNicStamps { interface: name.clone(), source })?;
        }
        let offload_header = prepare_socket(&socket, options).map_err(refused("preparing the socket"))?;
        let layout = Layout { offload_header, ethernet: link == LinkType::Ethernet };
        let shape = Shape::of(options.ring, snap(options));
        let ring = Ring::new(&socket, shape, options.retire, layout)
            .map_err(refused("making the ring (PACKET_RX_RING)"))?;
        let mut watch = LinkWatch::new(name).map_err(refused("asking for the interface (netlink)"))?;
        let state = watch.state().map_err(refused("asking for the interface (netlink)"))?;
        let (index, state) = state.ok_or_else(|| OpenError::NoInterface(name.clone()))?;
        let capture = Self {
            interface: name.clone(),
            socket,
            ring,
            link,
            tags,
            watch,
            index: Some(index),
            options: options.clone(),
            shared: false,
            lost: None,
            tells_interface: true,
            state,
            told: (state, backlog::dropped()),
            counts: Counts { link_was_down: !state.up, ..Counts::default() },
        };
        Ok((capture, program))
    }

    fn filter(&self, program: &[BpfInstruction]) -> Result<(), OpenError> {
        self.socket.attach(program).map_err(|source| self.refused("the filter (SO_ATTACH_FILTER)", source))
    }

    fn start(&mut self, promiscuous: bool) -> Result<(), OpenError> {
        let index = self.index.unwrap_or_default();
        if promiscuous {
            self.socket.be_promiscuous(index).map_err(|source| self.refused("promiscuous mode", source))?;
        }
        self.socket.bind(index).map_err(|source| self.refused("bind", source))?;
        // What was counted before is nobody's.
        let _ = self.socket.statistics();
        Ok(())
    }

    fn refused(&self, doing: &'static str, source: io::Error) -> OpenError {
        OpenError::System { interface: self.interface.clone(), doing, source }
    }

    /// Another filter from now on, `None`: everything. Packets that lie in the ring came through
    /// the one before.
    ///
    /// # Errors
    /// It cannot be used; the one before stays.
    pub fn set_filter(&mut self, filter: Option<&str>) -> Result<(), OpenError> {
        let options = Options { filter: filter.map(str::to_owned), ..self.options.clone() };
        let (program, tags) = plan_filter(&options, self.link)?;
        self.filter(&program)?;
        self.tags = tags;
        Ok(())
    }

    /// Name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// What its frames begin with.
    pub fn link(&self) -> LinkType {
        self.link
    }

    /// Which offloads it has on now.
    pub fn offloads(&self) -> Offloads {
        Offloads::read(self.socket.as_fd(), &self.interface)
    }

    /// Its MTU as last told, bytes; 0: not known.
    pub fn mtu(&self) -> u32 {
        self.state.mtu
    }

    /// Shows what has come: all blocks of the ring that are ready, once around at most. If there is
    /// none, waits for one, not longer than `patience`. The number of frames shown; 0 is no error
    /// and no end.
    ///
    /// # Errors
    /// Only what makes going on senseless; an interface that is down or gone is waited for. One of
    /// several captures that share an interface ends when another interface takes the name.
    pub fn read(&mut self, patience: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<usize, ReadError> {
        if self.ring.is_ready() {
            // An MTU that grew is known before the longer packets behind it are looked at.
            self.note_changes();
        } else {
            self.wait(patience)
                .map_err(|source| ReadError::System { interface: self.interface.clone(), source })?;
        }
        if let Some(source) = self.lost.take() {
            return Err(ReadError::System { interface: self.interface.clone(), source });
        }
        let Self { ring, counts, link, tags, state, .. } = self;
        let before = counts.seen;
        let mut show = |slot: Slot, bytes: &[u8]| {
            let segments = segments(&slot, bytes, *link, state.mtu);
            if tags.as_ref().is_some_and(|tags| !tags.matches(&frame_of(&slot, bytes, *link, segments))) {
                return;
            }
            counts.seen += 1;
            counts.seen_bytes += u64::from(slot.wire_length);
            counts.merged += u64::from(segments > 1);
            counts.stamped_by_nic += u64::from(slot.stamped_by == ClockSource::Nic);
            see(frame_of(&slot, bytes, *link, segments));
        };
        for _ in 0..ring.blocks() {
            if ring.drain_block(&mut show).is_none() {
                break;
            }
        }
        Ok((counts.seen - before) as usize)
    }

    /// What was seen and lost since the last call (or since the beginning). Packets that lie in the
    /// ring unread are neither.
    pub fn counts(&mut self) -> Counts {
        self.take_ring_losses();
        self.note_changes();
        if let Ok(now) = self.watch.state() {
            self.note(now.map_or(Change::Gone, |(index, state)| Change::Is(index, state)));
        }
        let backlog = backlog::dropped();
        let (then, backlog_then) = self.told;
        let mut counts = std::mem::take(&mut self.counts);
        counts.backlog = backlog.zip(backlog_then).map(|(now, then)| now.saturating_sub(then));
        if self.tells_interface {
            counts.lost_kernel = self.state.dropped.saturating_sub(then.dropped);
            counts.lost_nic = self.state.is_card.then(|| self.state.missed.saturating_sub(then.missed));
        }
        self.told = (self.state, backlog);
        counts.link_was_down |= !self.state.up;
        counts
    }

    fn take_ring_losses(&mut self) {
        // Version 3 tells packets, drops and freezes; packets contain the drops.
        if let Ok([_, drops, freezes]) = self.socket.statistics() {
            self.counts.lost_ring += u64::from(drops);
            self.counts.freezes += u64::from(freezes);
        }
    }

    /// Until a block is ready, something happens to an interface, or `patience` is over.
    fn wait(&mut self, patience: Span) -> io::Result<()> {
        let mut events = [
            libc::pollfd { fd: self.socket.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: self.watch.fd().as_raw_fd(), events: libc::POLLIN, revents: 0 },
        ];
        let patience = patience.or_zero().nanos();
        let timeout = libc::timespec { tv_sec: patience / 1_000_000_000, tv_nsec: patience % 1_000_000_000 };
        // SAFETY: both entries and the time outlive the call; signals stay as they are.
        let answer = unsafe { libc::ppoll(events.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
        if answer < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        if events[0].revents & libc::POLLERR != 0 {
            match self.socket.take_error() {
                // The interface went down, or away; the kernel takes up again when it is up.
                Some(error) if matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENODEV)) => {
                    self.counts.link_was_down = true;
                }
                Some(error) => return Err(error),
                None => {}
            }
        }
        if events[1].revents != 0 {
            self.note_changes();
        }
        Ok(())
    }

    fn note_changes(&mut self) {
        for change in self.watch.changes() {
            self.note(change);
        }
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Gone => {
                self.counts.link_was_down = true;
                self.state.up = false;
                self.index = None;
            }
            Change::Is(index, state) => {
                self.counts.link_was_down |= !state.up;
                self.counts.mtu_changed |= state.mtu != self.state.mtu;
                if self.index != Some(index) {
                    self.meet(index, state);
                }
                self.state = state;
            }
        }
    }

    /// Another interface has the name now. One of several cannot change over: the kernel keeps
    /// their group to the one before.
    fn meet(&mut self, index: i32, state: LinkState) {
        self.counts.link_was_down = true;
        self.index = Some(index);
        self.told.0 = state;
        let changed = if self.shared {
            Err(io::Error::new(io::ErrorKind::NotConnected, "another interface has its name now"))
        } else {
            self.change_over(index)
        };
        self.lost = changed.err();
    }

    /// What was asked of the interface before is asked of this one.
    fn change_over(&self, index: i32) -> io::Result<()> {
        if self.options.promiscuous {
            self.socket.be_promiscuous(index)?;
        }
        if self.options.stamps == ClockSource::Nic {
            self.socket.stamp_in_hardware(&self.interface)?;
        }
        self.socket.bind(index)
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("interface", &self.interface)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

/// The socket, by its interface's link layer, and what its frames begin with.
fn open_socket(interface: &str) -> Result<(PacketSocket, LinkType), OpenError> {
    let refused = |doing| {
        move |source: io::Error| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::Permission(interface.to_owned()),
            Some(libc::ENODEV) => OpenError::NoInterface(interface.to_owned()),
            _ if source.kind() == io::ErrorKind::InvalidInput => OpenError::NoInterface(interface.to_owned()),
            _ => OpenError::System { interface: interface.to_owned(), doing, source },
        }
    };
    let socket = PacketSocket::open(Begin::Link).map_err(refused("socket"))?;
    socket.index_of(interface).map_err(refused("asking for the interface"))?;
    match socket.hardware_of(interface).map_err(refused("asking for the interface"))? {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok((socket, LinkType::Ethernet)),
        // TUN, WireGuard and their like have no header.
        libc::ARPHRD_NONE | ARPHRD_RAWIP => Ok((socket, LinkType::Raw)),
        _ => Ok((PacketSocket::open(Begin::Network).map_err(refused("socket"))?, LinkType::Raw)),
    }
}

/// The program for the kernel, and what is left for behind the ring.
fn plan_filter(
    options: &Options,
    link: LinkType,
) -> Result<(Vec<BpfInstruction>, Option<TaggedFilter>), OpenError> {
    let text = options.filter.as_deref().unwrap_or_default();
    let compiled = filter::compile(text, link)?;
    let (program, tags) = if link == LinkType::Ethernet && filter::asks_for_tags(text) {
        (filter::compile("", link)?, Some(TaggedFilter::new(compiled)?))
    } else {
        (compiled, None)
    };
    let cut = filter::with_snap(&program, snap(options));
    Ok((if options.direction == Direction::Out { filter::sent_only(&cut) } else { cut }, tags))
}

/// What must be set before the ring. Whether frames come with a header that tells of offloads.
fn prepare_socket(socket: &PacketSocket, options: &Options) -> io::Result<bool> {
    const ON: libc::c_int = 1;
    socket.set(
        libc::SOL_PACKET,
        libc::PACKET_VERSION,
        &(libc::tpacket_versions::TPACKET_V3 as libc::c_int),
    )?;
    socket.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &TAG_ROOM)?;
    let offload_header = socket.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON).is_ok();
    // Stamps where packets enter the stack, not when they reach the ring.
    socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &ON)?;
    let received_only = options.direction == Direction::In
        || (options.direction == Direction::Both && is_loopback(socket, &options.interface));
    if received_only {
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ON)?;
    }
    Ok(offload_header)
}

fn is_loopback(socket: &PacketSocket, interface: &str) -> bool {
    socket.hardware_of(interface).is_ok_and(|kind| kind == libc::ARPHRD_LOOPBACK)
}

fn snap(options: &Options) -> u32 {
    options.snap.clamp(1, filter::WHOLE)
}

fn spread_number(spread: Spread) -> u32 {
    match spread {
        Spread::Flow => libc::PACKET_FANOUT_HASH,
        Spread::Core => libc::PACKET_FANOUT_CPU,
        Spread::Turn => libc::PACKET_FANOUT_LB,
    }
}

#[inline]
fn frame_of<'a>(slot: &Slot, bytes: &'a [u8], link: LinkType, segments: u16) -> Frame<'a> {
    Frame {
        at: slot.at,
        stamped_by: slot.stamped_by,
        outgoing: slot.outgoing,
        bytes,
        wire_length: slot.wire_length,
        link,
        segments,
        interface: 0,
    }
}

/// How many packets a frame stands for.
#[inline]
fn segments(slot: &Slot, bytes: &[u8], link: LinkType, mtu: u32) -> u16 {
    // Longer with tags, and then a closer look finds nothing.
    let header = if link == LinkType::Ethernet { 14 } else { 0 };
    let merged = slot.segment_size > 0 || (mtu > 0 && slot.wire_length - header.min(slot.wire_length) > mtu);
    if merged { count_segments(slot, bytes, link, mtu) } else { 1 }
}

/// Of a frame that is of several packets, or longer than the MTU with its link header.
#[cold]
fn count_segments(slot: &Slot, bytes: &[u8], link: LinkType, mtu: u32) -> u16 {
    let Ok(packet) = packet::parse(link, bytes, slot.wire_length) else { return 1 };
    let (bytes, each) = if slot.segment_size > 0 {
        let header = packet.tcp().map_or(8, |tcp| u32::from(tcp.header_length));
        (packet.rest_length().saturating_sub(header), u32::from(slot.segment_size))
    } else {
        (packet.length, mtu)
    };
    bytes.div_ceil(each).clamp(1, u32::from(u16::MAX)) as u16
}

/// Linux `uapi/linux/if_arp.h`.
const ARPHRD_RAWIP: u16 = 519;

#[cfg(test)]
mod tests {
    use netaware_units::Wall;

    use super::*;

    /// An Ethernet frame of an IPv4 UDP datagram with so many bytes of payload, cut to its headers.
    fn frame_with(payload: u16) -> (Vec<u8>, u32) {
        let mut bytes = vec![0; 12];
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((28 + payload).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0, 1, 0, 2, 0, 0, 0, 0]);
        (bytes, u32::from(payload) + 42)
    }

    fn slot(wire_length: u32, segment_size: u16) -> Slot {
        Slot {
            at: Wall(0),
            stamped_by: ClockSource::Kernel,
            outgoing: false,
            begin: 0,
            captured: 0,
            wire_length,
            segment_size,
            next: 0,
        }
    }

    #[test]
    fn merged_frames_are_known_by_the_kernels_word_or_by_their_length() {
        // Payload, size of segments as told, MTU; segments.
        let rows = [
            (1472, 0, 1500, 1),
            (1473, 0, 1500, 2),
            (1408, 64, 1500, 22),
            (1409, 64, 1500, 23),
            (60_000, 1472, 1500, 41),
            (60_000, 0, 1500, 41),
            (60_000, 0, 65_536, 1),
            (60_000, 0, 0, 1),
        ];
        for (payload, size, mtu, want) in rows {
            let (bytes, wire_length) = frame_with(payload);
            let found = segments(&slot(wire_length, size), &bytes, LinkType::Ethernet, mtu);
            assert_eq!(found, want, "{payload} {size} {mtu}");
        }
    }

    #[test]
    fn what_cannot_be_opened_is_told_apart() {
        let error = Capture::open(&Options::new("no-such-link")).unwrap_err();
        assert!(matches!(error, OpenError::NoInterface(_) | OpenError::Permission(_)), "{error}");
        let names = vec!["gro", "tso"];
        let error = OpenError::Merging { interface: "eth0".to_owned(), names };
        assert_eq!(
            error.to_string(),
            "eth0 merges packets (gro, tso); switch that off: ethtool -K eth0 gro off tso off"
        );
    }
}

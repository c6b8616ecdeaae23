//! One connection of a stream: what is half read from it and half written to it.

use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::net::TcpStream;
use std::sync::Arc;

use netaware_dual::{Due, Reception, Stream};
use netaware_io::tcp_info::TcpInfo;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::{HEAD_LEN, Record};
use rustix::net::{SendFlags, send};

use crate::inbox::Inbox;
use crate::kept::{Kept, Piece};
use crate::system::{self, MORE, NO_SIGNAL};

#[derive(Debug)]
pub(crate) struct Link {
    /// Shared with whoever waits for it, so that its number is not another socket's meanwhile.
    pub(crate) socket: Arc<TcpStream>,
    pub(crate) ip: IpVersion,
    pub(crate) generation: u32,
    reading: Reading,
    writing: Writing,
    /// The socket may have something to read.
    pub(crate) readable: bool,
    /// The socket took less than there was.
    pub(crate) blocked: bool,
    /// Since when looks have found something that the peer has not acknowledged.
    waits_since: Option<Mono>,
}

#[derive(Debug)]
enum Reading {
    Head { bytes: [u8; HEAD_LEN], have: usize },
    Data { offset: u64, left: u32 },
    Padding { left: u32 },
}

/// Small bytes first, then those of the record whose head is the last of them.
#[derive(Debug, Default)]
struct Writing {
    small: Vec<u8>,
    done: usize,
    data: Option<(u64, u32)>,
    padding: u32,
}

/// Where a reader wants bytes at once.
#[derive(Debug)]
pub(crate) struct Direct<'a> {
    pub(crate) out: &'a mut [u8],
    pub(crate) done: usize,
}

/// Why a connection is of no more use.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system's word; a regular end is `UnexpectedEof`.
    Io(io::Error),
    /// The peer does not keep to the framing.
    Framing(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Link {
    pub(crate) fn new(socket: TcpStream, ip: IpVersion, generation: u32) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(KEEPALIVE.to_std())
            .with_interval(KEEPALIVE_GAP.to_std())
            .with_retries(3);
        socket2::SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
        system::give_up_after(&socket, USER_TIMEOUT_MS)?;
        Ok(Self {
            socket: Arc::new(socket),
            ip,
            generation,
            reading: Reading::Head { bytes: [0; HEAD_LEN], have: 0 },
            writing: Writing::default(),
            readable: true,
            blocked: false,
            waits_since: None,
        })
    }

    /// Reads until the socket has nothing more or a reader has enough.
    pub(crate) fn read(
        &mut self,
        now: Mono,
        stream: &mut Stream,
        inbox: &mut Inbox,
        mut direct: Option<&mut Direct<'_>>,
    ) -> Result<(), Fault> {
        while self.readable {
            if direct.as_ref().is_some_and(|direct| direct.done > 0 && direct.done == direct.out.len()) {
                return Ok(());
            }
            let read = match self.reading {
                Reading::Head { .. } => self.read_head(now, stream),
                Reading::Data { offset, left } => {
                    self.read_data(now, stream, inbox, direct.as_deref_mut(), offset, left)
                }
                Reading::Padding { left } => self.drop_padding(left),
            };
            match read {
                Ok(()) => {}
                Err(Fault::Io(error)) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(Fault::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn read_head(&mut self, now: Mono, stream: &mut Stream) -> Result<(), Fault> {
        let Reading::Head { bytes, have } = &mut self.reading else { return Ok(()) };
        if *have < HEAD_LEN {
            *have += some((&*self.socket).read(&mut bytes[*have..])?)?;
        }
        if *have < HEAD_LEN {
            return Ok(());
        }
        let record = Record::parse(bytes).map_err(|why| Fault::Framing(why.to_string()))?;
        self.reading = match record {
            Record::Data { offset, length } => Reading::Data { offset, left: length },
            Record::Pad { length } => Reading::Padding { left: length },
            _ => Reading::Head { bytes: [0; HEAD_LEN], have: 0 },
        };
        let taken = stream.take(now, self.ip, record).map_err(|why| Fault::Framing(why.to_string()))?;
        if let (Reception::Ignored, Reading::Data { left, .. }) = (taken, &self.reading) {
            // Their place was not looked at.
            self.reading = Reading::Padding { left: *left };
        }
        Ok(())
    }

    fn read_data(
        &mut self,
        now: Mono,
        stream: &mut Stream,
        inbox: &mut Inbox,
        direct: Option<&mut Direct<'_>>,
        offset: u64,
        left: u32,
    ) -> Result<(), Fault> {
        let received = stream.received();
        let mut next = [0; HEAD_LEN];
        let mut came = 0;
        let arrived = |stream: &mut Stream, came: usize| {
            stream.arrived(now, offset, came as u32).map_err(|why| Fault::Framing(why.to_string()))
        };
        if offset < received {
            // They came before.
            let most = (received - offset).min(u64::from(left)).min(DROPPED as u64) as usize;
            came += some((&*self.socket).read(&mut [0; DROPPED][..most])?)?;
            arrived(stream, came)?;
        } else if let Some(direct) = direct.filter(|_| offset == received && stream.unread() == 0) {
            let free = &mut direct.out[direct.done..];
            let most = free.len().min(left as usize);
            // The head that follows comes with the bytes where there is room for all of them.
            let head = if most == left as usize { HEAD_LEN } else { 0 };
            let into = &mut [IoSliceMut::new(&mut free[..most]), IoSliceMut::new(&mut next[..head])];
            came += some((&*self.socket).read_vectored(into)?)?;
            let bytes = came.min(most);
            direct.done += bytes;
            arrived(stream, bytes)?;
            stream.consumed(now, bytes as u64);
            inbox.skip(bytes as u64);
        } else {
            came += some((&*self.socket).read(inbox.slot(offset, left as usize))?)?;
            arrived(stream, came)?;
        }
        self.reading = match (left as usize).checked_sub(came) {
            Some(left) if left > 0 => Reading::Data { offset: offset + came as u64, left: left as u32 },
            _ => Reading::Head { bytes: next, have: came - left as usize },
        };
        Ok(())
    }

    fn drop_padding(&mut self, left: u32) -> Result<(), Fault> {
        let most = DROPPED.min(left as usize);
        let left = left - some((&*self.socket).read(&mut [0; DROPPED][..most])?)? as u32;
        self.reading = match left {
            0 => Reading::Head { bytes: [0; HEAD_LEN], have: 0 },
            left => Reading::Padding { left },
        };
        Ok(())
    }

    /// Writes what is due until there is nothing or the socket takes no more.
    pub(crate) fn write(&mut self, now: Mono, stream: &mut Stream, kept: &Kept) -> Result<(), Fault> {
        self.blocked = false;
        loop {
            let written = if self.writing.done < self.writing.small.len() {
                self.write_small()
            } else if let Some((offset, left)) = self.writing.data {
                self.write_data(kept, offset, left)
            } else if self.writing.padding > 0 {
                self.write_padding()
            } else if self.gather(now, stream, kept)? {
                Ok(())
            } else {
                return Ok(());
            };
            match written {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => other?,
            }
        }
    }

    fn write_small(&mut self) -> io::Result<()> {
        let more =
            if self.writing.data.is_some() || self.writing.padding > 0 { MORE } else { SendFlags::empty() };
        let bytes = &self.writing.small[self.writing.done..];
        self.writing.done += send(&self.socket, bytes, more | NO_SIGNAL)?;
        Ok(())
    }

    fn write_data(&mut self, kept: &Kept, offset: u64, left: u32) -> io::Result<()> {
        let sent = match kept.piece(offset, left) {
            Piece::Kept { at, length } => system::send_file(&self.socket, kept.file(), at, length)?,
            // The peer has them, by the other connection; the record has to be filled all the same,
            // and not beyond them: it may need what follows.
            Piece::Forgotten { length } => {
                send(&self.socket, &[0; DROPPED][..DROPPED.min(length)], NO_SIGNAL)?
            }
        };
        let left = left.saturating_sub(sent as u32);
        self.writing.data = (left > 0).then_some((offset + sent as u64, left));
        Ok(())
    }

    fn write_padding(&mut self) -> io::Result<()> {
        let most = DROPPED.min(self.writing.padding as usize);
        self.writing.padding -= send(&self.socket, &[0; DROPPED][..most], NO_SIGNAL)? as u32;
        Ok(())
    }

    /// What to write next; whether there is anything.
    fn gather(&mut self, now: Mono, stream: &mut Stream, kept: &Kept) -> Result<bool, Fault> {
        let writing = &mut self.writing;
        writing.small.clear();
        writing.done = 0;
        while writing.small.len() < GATHERED && writing.data.is_none() && writing.padding == 0 {
            let Some(due) = stream.poll(now, self.ip) else { break };
            match due {
                Due::Record(record) => {
                    writing.small.extend(record.emit());
                    if let Record::Pad { length } = record {
                        writing.padding = length;
                    }
                }
                Due::Data { offset, length } => {
                    writing.small.extend(Record::Data { offset, length }.emit());
                    if length as usize > COPIED {
                        writing.data = Some((offset, length));
                    } else {
                        let from = writing.small.len();
                        writing.small.resize(from + length as usize, 0);
                        kept.copy(offset, &mut writing.small[from..])?;
                    }
                }
            }
        }
        Ok(!writing.small.is_empty())
    }

    /// What the kernel knows of it.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        TcpInfo::read(&self.socket)
    }

    /// Returns how long the peer has had something to acknowledge. It has to be called at each look
    /// at what the kernel knows.
    pub(crate) fn waited(&mut self, now: Mono, info: &TcpInfo) -> Span {
        self.waits_since = waits_since(self.waits_since, now, info);
        self.waits_since.map_or(Span::ZERO, |since| now - since)
    }

    /// Drops what is queued: the connection is left for good.
    pub(crate) fn reset(&self) {
        let _ = socket2::SockRef::from(&*self.socket).set_linger(Some(std::time::Duration::ZERO));
    }
}

fn waits_since(before: Option<Mono>, now: Mono, info: &TcpInfo) -> Option<Mono> {
    (info.unacked > 0).then(|| before.unwrap_or(now))
}

/// Whether a connection has acknowledged nothing of what it was given for longer than a live one
/// would take. It has `waited` for an acknowledgement; the last one may have come long before that,
/// in a time without anything to acknowledge. The only connection there is gets more time: there is
/// nowhere else to go.
pub(crate) fn is_silent(info: &TcpInfo, waited: Span, only: bool) -> bool {
    let rto = info.rto / (1_i64 << info.backoff.min(16));
    // What goes again after the first time-out is acknowledged a round trip later.
    let most = MOST_PATIENCE.max(rto + info.rtt + LEAST_PATIENCE);
    let patience = if only { ONLY_PATIENCE.max(most) } else { (rto * 2).clamp(LEAST_PATIENCE, most) };
    info.unacked > 0 && info.backoff > 0 && info.since_ack.min(waited) > patience
}

fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

/// Heads and short records are gathered up to so many bytes.
const GATHERED: usize = 16 * 1024;
/// Up to here a record's bytes are copied beside its head: one system call instead of two.
const COPIED: usize = 8 * 1024;
const DROPPED: usize = 16 * 1024;
const KEEPALIVE: Span = Span::from_secs(10);
const KEEPALIVE_GAP: Span = Span::from_secs(3);
const USER_TIMEOUT_MS: u32 = 30_000;
/// Two of its time-outs, within these: a dead connection is left within three of them or a second.
const LEAST_PATIENCE: Span = Span::from_millis(250);
/// It is more where one time-out and one round trip take longer.
const MOST_PATIENCE: Span = Span::from_millis(900);
const ONLY_PATIENCE: Span = Span::from_secs(15);

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use netaware_dual::{Peer, Setting, Side, Standing};
    use netaware_io::clock;
    use netaware_wire::dual::{Farewell, MAX_DATA};

    use super::*;

    fn ms(millis: i64) -> Span {
        Span::from_millis(millis)
    }

    /// After the first time-out, which has doubled the next one.
    fn timed_out(rtt: Span, rto: Span, since_ack: Span) -> TcpInfo {
        TcpInfo { rtt, rto: rto * 2, backoff: 1, unacked: 1, since_ack, ..TcpInfo::default() }
    }

    #[test]
    fn a_long_path_is_not_left_before_a_repeated_segment_can_be_acknowledged() {
        for (rtt, rto) in [(40, 240), (300, 500), (1200, 1400), (2500, 3300)] {
            let is_left = |after: i64| is_silent(&timed_out(ms(rtt), ms(rto), ms(after)), ms(after), false);
            assert!(!is_left(rto + rtt), "{rtt} ms: the acknowledgement comes just now");
            assert!(is_left(rto + rtt + 251), "{rtt} ms: nothing came");
        }
    }

    #[test]
    fn a_pause_before_a_lost_segment_is_not_silence() {
        let idle = TcpInfo { since_ack: ms(20_000), ..TcpInfo::default() };
        let mut waits = waits_since(None, Mono(0) + ms(20_000), &idle);
        assert_eq!(waits, None);
        let lost = timed_out(ms(40), ms(240), ms(20_260));
        for after in [20_010, 20_260] {
            waits = waits_since(waits, Mono(0) + ms(after), &lost);
            assert_eq!(waits, Some(Mono(0) + ms(20_010)), "since it was sent");
        }
        for only in [false, true] {
            assert!(!is_silent(&lost, ms(250), only), "it went again just now");
        }
        assert!(is_silent(&lost, ms(481), false) && !is_silent(&lost, ms(481), true));
        assert!(is_silent(&lost, ms(15_001), true));
        assert_eq!(waits_since(waits, Mono(0) + ms(20_400), &idle), None, "it was acknowledged");
    }

    fn byte(n: usize) -> u8 {
        (n % 251) as u8
    }

    /// A link over loopback that may send all, what it keeps, and the far end.
    fn over_loopback(bytes: &[u8]) -> (Link, Stream, Kept, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let room = bytes.len() as u32;
        let setting =
            Setting { side: Side::Opener, room, longest: MAX_DATA, ack_delay: Span::from_millis(1) };
        let (mut stream, mut kept) = (Stream::new(setting), Kept::new().unwrap());
        stream.connected(clock::now(), IpVersion::V4, 1, Peer { room, received: 0 }).unwrap();
        kept.append(bytes).unwrap();
        stream.queued(bytes.len() as u64);
        (Link::new(near, IpVersion::V4, 1).unwrap(), stream, kept, far)
    }

    /// What the far end reads when the bytes are changed where they are kept, after they were
    /// written to the connection.
    #[cfg(target_os = "linux")]
    fn read_after_a_change(count: usize) -> Vec<u8> {
        let (mut link, mut stream, kept, mut far) = over_loopback(&vec![1; count]);
        link.write(clock::now(), &mut stream, &kept).unwrap();
        assert!(!link.blocked && link.writing.data.is_none(), "all of it was taken");
        let Piece::Kept { at, length } = kept.piece(0, count as u32) else { panic!("it is forgotten") };
        assert_eq!(length, count);
        rustix::io::pwrite(kept.file(), &vec![2; count], at).unwrap();
        drop(link);
        let mut all = Vec::new();
        far.read_to_end(&mut all).unwrap();
        // Heads are before them.
        all.split_off(all.len() - count)
    }

    /// Nobody would do that: a change that is seen shows that the kernel has no copy of its own.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_on_its_way_is_not_copied_from_where_it_is_kept() {
        assert!(read_after_a_change(COPIED + 1).iter().all(|byte| *byte == 2));
        assert!(read_after_a_change(4 * COPIED).iter().all(|byte| *byte == 2));
        // Short records are, to go with their heads in one system call.
        assert!(read_after_a_change(COPIED).iter().all(|byte| *byte == 1));
    }

    /// A record is half written, and then the peer says that it has more than that half: by the
    /// connection that was lost before.
    #[test]
    fn what_follows_forgotten_bytes_in_a_record_is_as_it_was() {
        const ALL: usize = 1 << 20;
        let (mut link, mut stream, mut kept, mut far) =
            over_loopback(&(0..ALL).map(byte).collect::<Vec<_>>());
        for socket in [&*link.socket, &far] {
            let socket = socket2::SockRef::from(socket);
            socket.set_send_buffer_size(65_536).unwrap();
            socket.set_recv_buffer_size(65_536).unwrap();
        }
        link.write(clock::now(), &mut stream, &kept).unwrap();
        let Some((_, left)) = link.writing.data else { panic!("all of it was taken") };
        // Two blocks and a bit.
        let has = 2 * 256 * 1024 + 100;
        assert!(ALL - (left as usize) < has && link.blocked);
        kept.forget_before(has as u64);

        let (mut came, mut part) = (Vec::new(), vec![0; 65_536]);
        while link.blocked {
            let count = far.read(&mut part).unwrap();
            came.extend_from_slice(&part[..count]);
            link.write(clock::now(), &mut stream, &kept).unwrap();
        }
        drop(link);
        far.read_to_end(&mut came).unwrap();
        // The last of what came: the head of the record is before it.
        let data = &came[came.len() - ALL..];
        let wrong = (has..ALL).find(|n| data[*n] != byte(*n));
        assert_eq!(wrong, None, "the first byte that is not as it was");
    }

    /// Nobody looks at the place of bytes that come after that, which may be any.
    #[test]
    fn bytes_after_a_farewell_take_no_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let setting =
            Setting { side: Side::Opener, room: 1 << 20, longest: MAX_DATA, ack_delay: Span::from_millis(1) };
        let (mut stream, mut inbox) = (Stream::new(setting), Inbox::default());
        let peer = Peer { room: 1 << 20, received: 0 };
        stream.connected(clock::now(), IpVersion::V4, 1, peer).unwrap();
        let mut link = Link::new(near, IpVersion::V4, 1).unwrap();

        let farewell = Record::Bye { reason: Farewell::Abandoned };
        let records = [farewell, Record::Data { offset: 1 << 60, length: 3 }, farewell];
        let [bye, data, again] = records.map(|record| record.emit());
        far.write_all(&[&bye[..], &data, b"any", &again].concat()).unwrap();
        drop(far);
        let deadline = clock::now() + Span::from_secs(15);
        let ended = loop {
            assert!(clock::now() < deadline, "it does not end in 15 seconds");
            // The socket tells nobody here, so it is asked again.
            link.readable = true;
            if let Err(fault) = link.read(clock::now(), &mut stream, &mut inbox, None) {
                break fault;
            }
        };
        assert!(matches!(ended, Fault::Io(_)), "the records after it are read as such: {ended:?}");
        assert_eq!((stream.standing(), stream.received()), (Standing::Broken(Farewell::Abandoned), 0));
    }
}

//! Sends files: reads them, and follows [`Sending`] over one stream after the other until all is
//! there.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::{IpVersion, Use};
use netaware_stream::{DualStream, Options, Rules, Wanted};
use netaware_units::{Mono, Span};
use netaware_wire::proof::Key;
use netaware_wire::transfer::{Digest, Done, HEAD_LEN, Have, ReceiverMessage, RefusalCode, SenderMessage};

use crate::channel::{Came, Channel};
use crate::error::{Broken, Failure, SendError};
use crate::greeting::{introduce, plain};
use crate::plan::{Entry, Kind, Plan, attributes};
use crate::report::{Progress, SendReport};
use crate::retries::Retries;
use crate::sending::{Next, Sending};
use crate::silence::Silence;
use crate::switching::SwitchPlan;
use crate::tls;
use crate::watch::Watch;

/// How the stream is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    Off,
    /// The receiver has the certificate with this SHA-256.
    Pinned(Digest),
    /// Whoever has the key is the receiver; without a key there is no encryption worth the name.
    ByKey,
}

/// What to send, where to and how.
#[derive(Debug, Clone)]
pub struct SendRequest {
    /// Files and folders.
    pub files: Vec<PathBuf>,
    /// A name or an address, or several of them with commas between.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Which IP versions.
    pub wanted: Wanted,
    /// The shared key.
    pub key: Option<Key>,
    /// TLS or not.
    pub encryption: Encryption,
    /// When to change the IP version.
    pub switch: SwitchPlan,
    /// How long the first connection is tried.
    pub connect_patience: Span,
    /// How long a transfer that broke is tried again without getting on.
    pub patience: Span,
}

impl SendRequest {
    /// With what is usual.
    pub fn new(files: Vec<PathBuf>, host: impl Into<String>, port: u16) -> Self {
        Self {
            files,
            host: host.into(),
            port,
            wanted: Wanted::Each,
            key: None,
            encryption: Encryption::Off,
            switch: SwitchPlan::automatic(),
            connect_patience: Span::from_secs(5),
            patience: Span::from_secs(60),
        }
    }

    fn options(&self) -> Options {
        Options {
            patience: STREAM_PATIENCE,
            connect_patience: self.connect_patience,
            wanted: self.wanted,
            preferred: self.switch.first.unwrap_or(IpVersion::V6),
            policy: self.switch.auto.then(|| Rules::of(Use::Bulk)),
            ..Options::default()
        }
    }
}

/// Sends it; what came of it. Where the transfer breaks, it is gone on with over another
/// connection.
///
/// # Errors
/// Nothing could be sent at all.
pub fn send(
    request: &SendRequest,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<SendReport, SendError> {
    let plan = Plan::of(&request.files)?;
    progress(Progress::Planned { files: plan.files, bytes: plan.bytes });
    let mut watch = Watch::new(&request.switch, plan.bytes, stop, progress);
    let mut stream = DualStream::connect(&request.host, request.port, request.options())?;
    let began_at = clock::now();
    let report = SendReport {
        files: plan.files,
        bytes: plan.bytes,
        failures: plan.failures.clone(),
        ..SendReport::default()
    };
    let sending = Sending::new(plan.entries.len());
    let mut work = Work {
        request,
        sending,
        plan: &plan,
        report,
        facts: BTreeMap::new(),
        buffer: vec![0; HEAD_LEN + CHUNK],
    };
    let mut retries = Retries::new(watch.moved_at);
    loop {
        let sent_before = work.report.sent;
        let ended = work.run(stream, &mut watch);
        if ended.is_err() {
            work.report.sent = travelled(sent_before, work.report.sent, watch.unacknowledged);
        }
        watch.restart();
        let Err(why) = ended else { break };
        let gives_up = clock::now() - watch.moved_at > request.patience;
        if !why.is_passing() || gives_up {
            work.report.ended = Some(why);
            break;
        }
        if let Some(note) = retries.broke(watch.moved_at, &why) {
            watch.tell(Progress::Note(note));
        }
        let Some(next) = reconnect(request, &watch, &mut retries, stop) else {
            work.report.ended = Some(if stop.is_raised() { Broken::Stopped } else { why });
            break;
        };
        stream = next;
        work.report.reconnects += 1;
    }
    let mut report = work.report;
    report.took = clock::now() - began_at;
    report.missed = watch.missed();
    report.switches = watch.switches;
    report.decisions = watch.decisions;
    Ok(report)
}

/// Returns how many bytes of files have travelled once a stream broke: of those that were given to
/// it, which are those after `before`, it still kept some.
fn travelled(before: u64, sent: u64, unacknowledged: u64) -> u64 {
    sent.saturating_sub(unacknowledged).max(before)
}

/// Another stream to the same receiver, as long as that may take.
fn reconnect(
    request: &SendRequest,
    watch: &Watch<'_>,
    retries: &mut Retries,
    stop: &StopFlag,
) -> Option<DualStream> {
    while clock::now() - watch.moved_at <= request.patience && !stop.is_raised() {
        clock::sleep(retries.pause());
        if let Ok(stream) = DualStream::connect(&request.host, request.port, request.options()) {
            return Some(stream);
        }
    }
    None
}

/// A file as it was when it was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    length: u64,
    changed: (i64, i64),
    inode: u64,
}

impl Facts {
    fn of(about: &fs::Metadata) -> Self {
        Self { length: about.len(), changed: (about.mtime(), about.mtime_nsec()), inode: about.ino() }
    }
}

struct Work<'a> {
    request: &'a SendRequest,
    plan: &'a Plan,
    sending: Sending,
    report: SendReport,
    /// Of files that were announced and have not been sent.
    facts: BTreeMap<usize, Facts>,
    buffer: Vec<u8>,
}

impl Work<'_> {
    /// Over one stream, until all is there or the stream breaks.
    fn run(&mut self, stream: DualStream, watch: &mut Watch<'_>) -> Result<(), Broken> {
        let patience = self.request.connect_patience.max(LEAST_PATIENCE);
        let tls = match self.request.encryption {
            Encryption::Off => None,
            Encryption::Pinned(fingerprint) => Some(tls::client(Some(fingerprint))?),
            Encryption::ByKey => Some(tls::client(None)?),
        };
        let mut channel = Channel::new(stream, tls);
        channel.shake_hands(clock::now() + patience)?;
        introduce(&mut channel, self.request.key.as_ref(), patience)?;
        watch.tell(Progress::Connected);
        self.sending.restart();
        self.facts.clear();
        (watch.settled, watch.position) = (self.settled(), 0);
        let plan = SenderMessage::Plan { files: self.plan.files, bytes: self.plan.bytes };
        channel.say(&plan, &mut |stream| watch.look(stream))?;
        let mut said_at = clock::now();
        let mut silence = Silence::new(said_at);
        loop {
            watch.look(channel.stream())?;
            match self.sending.next() {
                Next::Announce(entry) => self.announce(&mut channel, watch, entry)?,
                Next::Send(entry, have) => {
                    self.send(&mut channel, watch, entry, have)?;
                    said_at = clock::now();
                    silence.heard(said_at);
                }
                Next::Finish => {
                    channel.say(&SenderMessage::Finish, &mut |stream| watch.look(stream))?;
                    self.sending.said_finish();
                }
                Next::Listen => {
                    let now = clock::now();
                    let status = channel.stream().status();
                    let given = status.acknowledged + status.unacknowledged;
                    let silent_for = silence.lasts(now, status.acknowledged, given);
                    if self.hear(&mut channel, watch, now + LISTENED)? {
                        silence.heard(now);
                    } else if silent_for > SILENCE {
                        return Err(Broken::Silent(SILENCE));
                    }
                    if now - said_at > WAIT_EVERY {
                        channel.say(&SenderMessage::Wait, &mut |stream| watch.look(stream))?;
                        said_at = now;
                    }
                    continue;
                }
                Next::Over => break,
            }
            silence.spoke();
            while self.hear(&mut channel, watch, clock::now())? {}
        }
        // All is said and heard: what is left is politeness.
        let _ = channel.finish(clock::now() + Span::from_secs(2));
        Ok(())
    }

    /// Bytes of what needs no more.
    fn settled(&self) -> u64 {
        let over = |(n, entry): (usize, &Entry)| match entry.kind {
            Kind::File(bytes) if self.sending.is_over(n) => bytes,
            _ => 0,
        };
        self.plan.entries.iter().enumerate().map(over).sum()
    }

    fn announce(&mut self, channel: &mut Channel, watch: &mut Watch<'_>, entry: usize) -> Result<(), Broken> {
        let plan = self.plan;
        let Entry { source, path, kind } = &plan.entries[entry];
        let number = entry as u64;
        let path = path.clone();
        let message = match (kind, fs::metadata(source)) {
            (Kind::Folder, _) => SenderMessage::Directory { entry: number, path },
            (Kind::File(_), Ok(about)) if about.is_file() => {
                let (mode, mtime) = attributes(&about);
                self.facts.insert(entry, Facts::of(&about));
                SenderMessage::File { entry: number, path, bytes: about.len(), mode, mtime }
            }
            (Kind::Seal, Ok(about)) => {
                let (mode, mtime) = attributes(&about);
                SenderMessage::Seal { entry: number, path, mode, mtime }
            }
            (_, Ok(_)) => {
                self.skip(watch, entry, "it is no file any more");
                return Ok(());
            }
            (_, Err(why)) => {
                self.skip(watch, entry, &why.to_string());
                return Ok(());
            }
        };
        self.sending.announced(entry, matches!(kind, Kind::File(_)));
        channel.say(&message, &mut |stream| watch.look(stream))
    }

    fn skip(&mut self, watch: &mut Watch<'_>, entry: usize, why: &str) {
        self.sending.skip(entry);
        self.fail(entry, why);
        self.settle(watch, entry);
    }

    fn fail(&mut self, entry: usize, why: &str) {
        let path = self.plan.entries[entry].path.to_string();
        self.report.failures.push(Failure { path, why: why.to_owned() });
    }

    /// Nothing more of it is going to travel.
    fn settle(&self, watch: &mut Watch<'_>, entry: usize) {
        if let Kind::File(bytes) = self.plan.entries[entry].kind {
            watch.settled += bytes;
            watch.position = 0;
        }
    }

    fn send(
        &mut self,
        channel: &mut Channel,
        watch: &mut Watch<'_>,
        entry: usize,
        have: Option<Have>,
    ) -> Result<(), Broken> {
        let sent = self.send_file(channel, watch, entry, have)?;
        self.settle(watch, entry);
        let number = entry as u64;
        let message = match sent {
            Ok(digest) => SenderMessage::End { entry: number, digest },
            Err(why) => {
                if let Some(why) = why {
                    self.fail(entry, &why);
                }
                SenderMessage::GiveUp { entry: number }
            }
        };
        self.sending.sent(entry);
        channel.say(&message, &mut |stream| watch.look(stream))
    }

    /// The digest of a file that went, or why it did not; no reason where the receiver has one.
    fn send_file(
        &mut self,
        channel: &mut Channel,
        watch: &mut Watch<'_>,
        entry: usize,
        have: Option<Have>,
    ) -> Result<Result<Digest, Option<String>>, Broken> {
        let give_up = |why: &str| Ok(Err(Some(why.to_owned())));
        let Some(facts) = self.facts.remove(&entry) else { return give_up("it was not announced") };
        let source = self.plan.entries[entry].source.clone();
        let mut file = match open(&source) {
            Ok(file) => file,
            Err(why) => return give_up(&why.to_string()),
        };
        if !is_same(&file, facts) {
            return give_up(CHANGED);
        }
        let mut hasher = blake3::Hasher::new();
        let mut from = 0;
        if let Some(have) = have.filter(|have| have.bytes <= facts.length) {
            match self.compare(channel, watch, &mut file, &mut hasher, have)? {
                Ok(true) => from = have.bytes,
                // The receiver keeps what it has, and says so.
                Ok(false) if have.complete => return Ok(Err(None)),
                Ok(false) => {
                    let path = &self.plan.entries[entry].path;
                    let what =
                        format!("{path}: what is there of it is damaged or of another file; sent anew");
                    watch.tell(Progress::Note(what));
                    hasher = blake3::Hasher::new();
                    if let Err(why) = std::io::Seek::rewind(&mut file) {
                        return give_up(&why.to_string());
                    }
                }
                Err(why) => return give_up(&why),
            }
            if from > 0 && !have.complete {
                self.report.resumed += from;
            }
        }
        watch.begin(from);
        let begin = SenderMessage::Begin { entry: entry as u64, from };
        channel.say(&begin, &mut |stream| watch.look(stream))?;
        while watch.position < facts.length {
            let room = (facts.length - watch.position).min(CHUNK as u64) as usize;
            let count = match file.read(&mut self.buffer[HEAD_LEN..HEAD_LEN + room]) {
                Ok(0) => return give_up(CHANGED),
                Ok(count) => count,
                Err(why) => return give_up(&why.to_string()),
            };
            hasher.update(&self.buffer[HEAD_LEN..HEAD_LEN + count]);
            channel.send_chunk(&mut self.buffer[..HEAD_LEN + count], &mut |stream| watch.look(stream))?;
            watch.position += count as u64;
            self.report.sent += count as u64;
            watch.look(channel.stream())?;
            while self.hear(channel, watch, clock::now())? {}
            if !self.sending.is_open(entry) {
                return Ok(Err(None));
            }
        }
        if is_same(&file, facts) { Ok(Ok(Digest(hasher.finalize().into()))) } else { give_up(CHANGED) }
    }

    /// Whether the file begins with what the receiver has; the hasher knows that part afterwards.
    fn compare(
        &mut self,
        channel: &mut Channel,
        watch: &mut Watch<'_>,
        file: &mut File,
        hasher: &mut blake3::Hasher,
        have: Have,
    ) -> Result<Result<bool, String>, Broken> {
        let (mut left, mut said_at) = (have.bytes, clock::now());
        while left > 0 {
            let room = left.min(CHUNK as u64) as usize;
            match file.read(&mut self.buffer[..room]) {
                Ok(0) => return Ok(Err(CHANGED.to_owned())),
                Ok(count) => {
                    hasher.update(&self.buffer[..count]);
                    left -= count as u64;
                }
                Err(why) => return Ok(Err(why.to_string())),
            }
            watch.look(channel.stream())?;
            if clock::now() - said_at > WAIT_EVERY {
                channel.say(&SenderMessage::Wait, &mut |stream| watch.look(stream))?;
                said_at = clock::now();
            }
        }
        Ok(Ok(Digest(hasher.finalize().into()) == have.digest))
    }

    /// Takes in what the receiver says; false if nothing came until then.
    fn hear(&mut self, channel: &mut Channel, watch: &mut Watch<'_>, until: Mono) -> Result<bool, Broken> {
        let body = match channel.next(until)? {
            None => return Ok(false),
            Some(Came::Message(body)) => body,
            Some(Came::Chunk(_)) => return Err(Broken::Protocol("the receiver sends a file".into())),
        };
        let message = ReceiverMessage::parse(&body).map_err(|why| Broken::Protocol(why.to_string()))?;
        if let ReceiverMessage::Error { code, why }
        | ReceiverMessage::Refused { code: code @ RefusalCode::Busy, why, .. } = &message
        {
            return Err(Broken::Refused { code: *code, why: plain(why) });
        }
        let out_of_turn = |_| Broken::Protocol("the receiver says what cannot be said now".into());
        self.sending.hear(&message).map_err(out_of_turn)?;
        match message {
            ReceiverMessage::Done { entry, how } => {
                if let Kind::File(_) = self.plan.entries[entry as usize].kind {
                    match how {
                        Done::Written => self.report.written += 1,
                        Done::Present => self.report.present += 1,
                    }
                }
            }
            ReceiverMessage::Refused { entry, code, why } => {
                if code != RefusalCode::GivenUp {
                    self.fail(entry as usize, &plain(&why));
                }
                if self.facts.remove(&(entry as usize)).is_some() {
                    self.settle(watch, entry as usize);
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

/// A pipe that took the file's place must not hold us.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn is_same(file: &File, facts: Facts) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && Facts::of(&about) == facts)
}

const CHANGED: &str = "it changed while it was sent; send it again";
/// Of a file at once: large enough that calls cost nothing, small enough that a switch is soon.
const CHUNK: usize = 256 * 1024;
/// A stream without any connection is given up after this; the transfer goes on over another one.
pub(crate) const STREAM_PATIENCE: Span = Span::from_secs(5);
/// For the greeting.
const LEAST_PATIENCE: Span = Span::from_secs(10);
/// A peer that has given no sign of life for this long is gone.
pub(crate) const SILENCE: Span = Span::from_secs(30);
/// Who has nothing to say says so this often.
pub(crate) const WAIT_EVERY: Span = Span::from_secs(2);
const LISTENED: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broken_stream_still_kept_is_not_counted_as_sent() {
        const WINDOW: u64 = 16 << 20;
        for (before, sent, unacknowledged, want) in [
            (0, 20_000_000, WINDOW, 20_000_000 - WINDOW),
            (5_000, 20_000_000, 0, 20_000_000),
            // Greetings and "wait" are kept as well.
            (0, 1000, 1020, 0),
            (4_000_000, 4_000_000, 20, 4_000_000),
            (4_000_000, 4_001_000, 1020, 4_000_000),
        ] {
            assert_eq!(travelled(before, sent, unacknowledged), want, "{before} {sent} {unacknowledged}");
        }
    }
}

//! One probe's connection, from its first byte to its last.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use netaware_io::clock;
use netaware_pool::Place;
use netaware_record::Document as _;
use netaware_record::passive::{PacketSighting, ProbeReport};
use netaware_wire::Token;
use netaware_wire::frame::{self, FrameError};
use netaware_wire::ipfix::sightings;
use netaware_wire::lmap::{FromCollector, FromProbe, Instruction, MessageError};
use netaware_wire::proof;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::controller::Running;
use crate::desk::{Delivery, Errand};
use crate::roster::{Arrival, OUTBOX, Occupied};
use crate::shared::Shared;

/// What the other end of a connection is known to be by its encryption.
#[derive(Default)]
pub(crate) struct Peer {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) encrypted: bool,
    /// Of the encryption (RFC 9266).
    pub(crate) binding: Vec<u8>,
    pub(crate) certificate: Option<CertificateDer<'static>>,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum Parting {
    #[error("{0}")]
    Connection(#[from] std::io::Error),
    #[error("it said nothing for too long")]
    Silent,
    #[error("{why}")]
    Refused { why: String, again_after: Option<u32> },
}

fn refused(why: impl Into<String>) -> Parting {
    Parting::Refused { why: why.into(), again_after: None }
}

const ANSWER: Duration = Duration::from_secs(10);
/// A status comes every ten seconds.
const SILENCE: Duration = Duration::from_secs(35);
const BATCH: Duration = Duration::from_mins(1);
const WRITE: Duration = Duration::from_secs(30);
/// Messages of a later version that are let pass in one connection.
const UNKNOWN: u32 = 1000;

/// Serves a connection whose preface has been read. Its place cannot be taken away any more once
/// the probe has proven who it is.
pub(crate) async fn serve<S>(shared: Arc<Shared>, stream: S, peer: Peer, place: Place)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::with_capacity(16 << 10, reader);
    let joined = match greet(&shared, &mut reader, &mut writer, &peer, &place).await {
        Ok(joined) => joined,
        Err(parting) => {
            shared.refused(&parting, peer.address);
            part(&mut writer, parting).await;
            return;
        }
    };
    let Joined { probe, incarnation, id, inbox, part: ended, told } = joined;
    tracing::info!(probe = &*probe, peer = ?peer.address, "connected");
    let session = Session { shared: shared.clone(), probe: probe.clone(), incarnation, id };
    let parting = tokio::select! {
        parting = session.read(&mut reader) => parting,
        parting = write(&mut writer, inbox, told, &probe) => parting,
        () = ended.notified() => refused("another connection of this probe took its place, or it was taken out of collect.toml"),
    };
    shared.roster.depart(&probe, id, clock::wall());
    tracing::info!(probe = &*probe, why = %parting, "disconnected");
    part(&mut writer, parting).await;
}

impl Shared {
    fn refused(&self, parting: &Parting, peer: Option<SocketAddr>) {
        use std::sync::atomic::Ordering::Relaxed;
        if let Parting::Refused { why, .. } = parting {
            self.counts.refused.fetch_add(1, Relaxed);
            self.complain(peer, why);
        }
    }
}

/// Says why, if there is something to say, and waits a moment so that it arrives.
async fn part(writer: &mut (impl AsyncWrite + Unpin), parting: Parting) {
    if let Parting::Refused { why, again_after } = parting
        && let Ok(bytes) = frame::emit(&FromCollector::Refusal { why, again_after })
    {
        let _ = timeout(Duration::from_secs(2), writer.write_all(&bytes)).await;
    }
    let _ = timeout(Duration::from_secs(2), writer.shutdown()).await;
}

struct Joined {
    probe: Arc<str>,
    incarnation: Arc<str>,
    id: u64,
    inbox: mpsc::Receiver<FromCollector>,
    part: Arc<Notify>,
    told: Told,
}

/// What the probe was told, and what tells of changes since.
struct Told {
    instruction: Instruction,
    changes: watch::Receiver<Arc<Running>>,
}

async fn say(writer: &mut (impl AsyncWrite + Unpin), message: &FromCollector) -> Result<(), Parting> {
    let bytes = frame::emit(message).map_err(|why| refused(why.to_string()))?;
    let written = async {
        writer.write_all(&bytes).await?;
        writer.flush().await
    };
    timeout(WRITE, written).await.map_err(|_| Parting::Silent)?.map_err(Parting::Connection)
}

/// The body of the next frame.
async fn next(reader: &mut (impl AsyncRead + Unpin), patience: Duration) -> Result<Vec<u8>, Parting> {
    let mut head = [0; 4];
    timeout(patience, reader.read_exact(&mut head)).await.map_err(|_| Parting::Silent)??;
    let length = frame::body_len(head).map_err(|why| refused(why.to_string()))?;
    let mut body = vec![0; length];
    timeout(ANSWER, reader.read_exact(&mut body)).await.map_err(|_| Parting::Silent)??;
    Ok(body)
}

async fn greet(
    shared: &Arc<Shared>,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    peer: &Peer,
    place: &Place,
) -> Result<Joined, Parting> {
    let mut nonce = Token::default();
    getrandom::fill(&mut nonce.0).map_err(|why| refused(format!("no random numbers: {why}")))?;
    say(writer, &FromCollector::Challenge { nonce: nonce.to_string() }).await?;
    let body = next(reader, ANSWER).await?;
    let hello = FromProbe::parse(&body).map_err(|why| refused(why.to_string()))?;
    let FromProbe::Hello {
        probe,
        nonce: theirs,
        proof,
        software,
        abilities,
        interfaces,
        addresses,
        instruction,
        incarnation,
    } = hello
    else {
        return Err(refused("a probe begins with hello"));
    };
    let theirs: Token = theirs.parse().map_err(|_| refused("the nonce is no token"))?;
    let ours = known(shared, &probe, (nonce, theirs), &proof, peer)?;
    // Before the store is asked, which may take its time: when a collector starts, all probes of a
    // fleet come at once, and many may share one address.
    place.prove();
    let (probe, incarnation): (Arc<str>, Arc<str>) = (probe.into(), incarnation.into());
    let taken = highest(shared, &probe, &incarnation).await?;
    let (outbox, inbox) = mpsc::channel(OUTBOX);
    let (part, id) = (Arc::new(Notify::new()), shared.next_session());
    let arrival = Arrival {
        probe: probe.to_string(),
        incarnation: incarnation.to_string(),
        software,
        abilities,
        interfaces,
        addresses,
        instruction,
        peer: peer.address,
        encrypted: peer.encrypted,
    };
    let now = (clock::now(), clock::wall());
    let arrived = shared.roster.arrive(arrival, id, outbox, part.clone(), now);
    arrived.map_err(|Occupied(other)| Parting::Refused {
        why: format!(
            "another probe named '{probe}' is connected{}; give each probe a name and a key of its own",
            other.map_or(String::new(), |other| format!(" from {other}"))
        ),
        again_after: Some(30),
    })?;
    let mut changes = shared.controller.watch();
    let instruction = changes.borrow_and_update().instruction(&probe);
    let welcome = async {
        say(writer, &FromCollector::Welcome { proof: ours, taken }).await?;
        say(writer, &FromCollector::Instruction(instruction.clone())).await
    };
    if let Err(parting) = welcome.await {
        shared.roster.depart(&probe, id, clock::wall());
        return Err(parting);
    }
    Ok(Joined { probe, incarnation, id, inbox, part, told: Told { instruction, changes } })
}

/// Whether it is who it says; gives our own proof. A stranger does not learn which names exist.
fn known(
    shared: &Shared,
    probe: &str,
    (ours, theirs): (Token, Token),
    given: &str,
    peer: &Peer,
) -> Result<String, Parting> {
    let running = shared.controller.running();
    let exists = running.config.probes.contains_key(probe);
    let key = running.key(probe);
    let carded = peer.certificate.as_ref().is_some_and(|shown| crate::tls::names(shown, probe));
    let bytes = key.map_or(&[][..], proof::Key::bytes);
    let proven = proof::matches(&proof::fleet_probe(bytes, ours, theirs, probe, &peer.binding), given);
    // Without a key in collect.toml the proof says nothing, and the certificate has to.
    let is_it = exists && proven && (key.is_some() || carded);
    if is_it {
        return Ok(proof::fleet_collector(bytes, ours, theirs, probe, &peer.binding));
    }
    shared.roster.note(probe, |view| view.counts.refused += 1);
    Err(refused(
        "the collector does not know a probe of this name with this key: look at its collect.toml and the key file",
    ))
}

async fn highest(shared: &Shared, probe: &Arc<str>, incarnation: &Arc<str>) -> Result<u64, Parting> {
    let (reply, answer) = oneshot::channel();
    let errand = Errand::Highest { probe: probe.clone(), incarnation: incarnation.clone(), reply };
    shared.bring(errand).await;
    let later = |why: String| Parting::Refused { why, again_after: Some(10) };
    match timeout(BATCH, answer).await {
        Ok(Ok(Ok(taken))) => Ok(taken),
        Ok(Ok(Err(why))) => {
            tracing::error!("the store does not answer: {why}");
            Err(later("the collector's store does not answer at present".into()))
        }
        _ => Err(later("the collector is too busy at present".into())),
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    mut inbox: mpsc::Receiver<FromCollector>,
    told: Told,
    probe: &str,
) -> Parting {
    let Told { instruction: mut told, mut changes } = told;
    loop {
        let message = tokio::select! {
            message = inbox.recv() => match message {
                Some(FromCollector::Refusal { why, again_after }) => return Parting::Refused { why, again_after },
                Some(message) => message,
                None => return refused("the collector parts"),
            },
            changed = changes.changed() => {
                if changed.is_err() {
                    return Parting::Refused { why: "the collector ends".into(), again_after: Some(5) };
                }
                let instruction = changes.borrow_and_update().instruction(probe);
                // A change that does not concern this probe is not told: it would only be a new
                // number.
                let same = Instruction { number: told.number, ..instruction.clone() } == told;
                if same {
                    continue;
                }
                told = instruction.clone();
                FromCollector::Instruction(instruction)
            }
        };
        if let Err(parting) = say(writer, &message).await {
            return parting;
        }
    }
}

struct Session {
    shared: Arc<Shared>,
    probe: Arc<str>,
    incarnation: Arc<str>,
    id: u64,
}

impl Session {
    async fn read(&self, reader: &mut (impl AsyncRead + Unpin)) -> Parting {
        let mut unknown = 0;
        loop {
            let body = match next(reader, SILENCE).await {
                Ok(body) => body,
                Err(parting) => return parting,
            };
            self.shared.roster.heard(&self.probe, self.id, clock::now());
            let done = match FromProbe::parse(&body) {
                Ok(message) => self.handle(message, reader).await,
                Err(MessageError::Frame(FrameError::UnknownType(_))) if unknown < UNKNOWN => {
                    unknown += 1;
                    Ok(())
                }
                Err(why) => Err(refused(why.to_string())),
            };
            if let Err(parting) = done {
                return parting;
            }
        }
    }

    async fn handle(&self, message: FromProbe, reader: &mut (impl AsyncRead + Unpin)) -> Result<(), Parting> {
        match message {
            FromProbe::Hello { .. } => Err(refused("a probe says hello once")),
            FromProbe::Following { instruction, refused } => {
                self.shared.roster.note(&self.probe, |view| {
                    view.following = Some(instruction);
                    view.refused = refused;
                });
                Ok(())
            }
            FromProbe::Status(status) => {
                self.shared.mesh.status(&self.probe, &status.running, clock::now());
                self.shared.roster.status(&self.probe, status);
                Ok(())
            }
            FromProbe::Batch { sequence, ipfix, report, selections } => {
                let lengths = (ipfix as usize, report as usize);
                self.batch(sequence, lengths, &selections, reader).await
            }
        }
    }

    async fn batch(
        &self,
        sequence: u64,
        (ipfix, report): (usize, usize),
        selections: &BTreeMap<String, u64>,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), Parting> {
        let bytes = ipfix + report;
        let room = self.room(bytes).await?;
        let mut content = vec![0; bytes];
        timeout(BATCH, reader.read_exact(&mut content)).await.map_err(|_| Parting::Silent)??;
        let (packets, json) = content.split_at(ipfix);
        let report = if json.is_empty() { None } else { Some(self.report(json, sequence)?) };
        let (sightings, malformed) = read_sightings(packets, selections);
        if let Some(report) = &report {
            self.shared.mesh.report(&self.probe, report, clock::now());
            self.shared.latest.report(report, &self.probe, &self.shared.controller.running().config);
        }
        let delivery = Delivery {
            probe: self.probe.clone(),
            incarnation: self.incarnation.clone(),
            sequence,
            sightings,
            report,
            bytes: bytes as u64,
            malformed,
            missing: 0,
            room,
        };
        self.shared.bring(Errand::Take(Box::new(delivery))).await;
        Ok(())
    }

    /// Memory for a batch, shared by all probes: who comes when there is none waits before its
    /// bytes are read.
    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Parting> {
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let wanted = self.shared.room.clone().acquire_many_owned(kibibytes);
        timeout(BATCH, wanted).await.ok().and_then(Result::ok).ok_or_else(|| Parting::Refused {
            why: "the collector has no room at present".into(),
            again_after: Some(10),
        })
    }

    /// A report says whose it is and which; both have to be true.
    fn report(&self, json: &[u8], sequence: u64) -> Result<ProbeReport, Parting> {
        let report = ProbeReport::from_json(json).map_err(|why| {
            let why = netaware_record::excerpt(&why.to_string(), 200);
            refused(format!("batch {sequence} is no report: {why}"))
        })?;
        let lie = if *report.probe != *self.probe {
            Some("a report in another probe's name")
        } else if report.sequence != sequence {
            Some("a report with another number than its batch")
        } else if report.period.until <= report.period.from {
            Some("a report whose period ends before it begins")
        } else {
            None
        };
        match lie {
            None => Ok(report),
            Some(what) => {
                self.shared.roster.note(&self.probe, |view| view.counts.lies += 1);
                let probe = &self.probe;
                tracing::warn!(probe = &**probe, "{what}");
                Err(refused(what))
            }
        }
    }
}

/// Sightings by task, and how much could not be read.
fn read_sightings(
    ipfix: &[u8],
    selections: &BTreeMap<String, u64>,
) -> (Vec<(String, Vec<PacketSighting>)>, u64) {
    if ipfix.is_empty() {
        return (Vec::new(), 0);
    }
    let Ok(batch) = sightings::read(ipfix) else { return (Vec::new(), 1) };
    let counts = batch.counts;
    let malformed = batch.ignored
        + counts.records_bad
        + counts.messages_bad
        + counts.sets_unknown
        + counts.sets_reserved
        + counts.templates_bad;
    let names: BTreeMap<u64, &String> = selections.iter().map(|(task, number)| (*number, task)).collect();
    let seen = batch.selections.into_iter().map(|(selection, seen)| {
        let named = names.get(&selection.sequence).map_or(selection.task, |task| (*task).clone());
        (named, seen)
    });
    (seen.collect(), malformed)
}

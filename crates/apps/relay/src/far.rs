//! The end that connects to servers: to those of its own command line, whoever asks.

use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, Shutdown, SocketAddr};
use std::sync::Arc;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_pool::{AtShare, Limits, Place, Places, Standing};
use netaware_server::Network;
use netaware_stream::{AsyncDualStream, DualListener, DualStream};
use netaware_units::Span;
use netaware_wire::relay::Verdict;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::carry::carry;
use crate::end::{Shared, prepare, reset, stopped};
use crate::speech::{self, SERVER, SpeechError};
use crate::{RelayError, Settings};

/// Where streams are taken, and what they may be connected to.
#[derive(Debug, Clone)]
pub struct Far {
    /// Streams are taken here. One address without an IP version, `[::]` alone, is all of both.
    pub accept: Vec<SocketAddr>,
    /// What can be asked for.
    pub forwards: Vec<Forward>,
    /// Who may ask, where the first connection of a stream comes from; empty is everybody.
    pub allow: Vec<Network>,
}

/// A server that near relays may be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// As near relays call it; empty is the one that they get without naming any.
    pub name: String,
    /// Name or address of its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The listener, until it is put to work.
#[derive(Debug)]
pub(crate) struct Doors(Arc<DualListener>);

impl Doors {
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.addresses().to_vec()
    }
}

pub(crate) fn listen(far: &Far, settings: &Settings) -> Result<Doors, RelayError> {
    let options = settings.options;
    let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let listener = match far.accept[..] {
        [one] if one.ip() == all.ip() => DualListener::bind(one.port(), options),
        _ => DualListener::bind_to(&far.accept, options),
    };
    let address = far.accept.first().copied().unwrap_or(all);
    listener.map(|it| Doors(Arc::new(it))).map_err(|source| RelayError::Listen { address, source })
}

/// Until it is stopped; connections go on, and need the doors for their further connections.
pub(crate) async fn serve(shared: &Arc<Shared>, far: Arc<Far>, doors: Doors) -> Doors {
    let (tell, mut came) = mpsc::channel(WAITING);
    let (listener, stopping) = (doors.0.clone(), shared.clone());
    let accepting = quiet_thread("relay-accept", move || accept(&stopping, &listener, &tell));
    if let Err(why) = accepting {
        warn!("cannot take streams: {why}");
        return doors;
    }
    let strangers = Places::new(STRANGERS);
    let seats = Places::new(seats(shared.settings.max));
    let stop = stopped(shared.orders());
    tokio::pin!(stop);
    loop {
        let (stream, from): (DualStream, SocketAddr) = tokio::select! {
            () = &mut stop => return doors,
            came = came.recv() => match came {
                Some(came) => came,
                None => return doors,
            },
        };
        let admitted = far.allow.is_empty() || far.allow.iter().any(|network| network.contains(from.ip()));
        if !admitted {
            shared.note_refusal(&from.to_string(), "not allowed");
            stream.shutdown(Shutdown::Both);
            continue;
        }
        let twin = stream.clone();
        let end = move || twin.shutdown(Shutdown::Both);
        let Ok(place) = strangers.enter(from.ip(), Standing::Unproven, end) else {
            shared.note_refusal(&from.to_string(), "too many connections that have proven nothing");
            stream.shutdown(Shutdown::Both);
            continue;
        };
        let (shared, far, seats) = (shared.clone(), far.clone(), seats.clone());
        tokio::spawn(async move { serve_one(&shared, &far, (stream, from), place, &seats).await });
    }
}

/// Blocks, so it has a thread of its own. Ends with the relay.
fn accept(shared: &Shared, listener: &DualListener, tell: &mpsc::Sender<(DualStream, SocketAddr)>) {
    while !shared.is_stopping() {
        match listener.accept_until(Some(clock::now() + LOOK)) {
            Ok(came) => {
                if tell.blocking_send(came).is_err() {
                    return;
                }
            }
            Err(why) if why.kind() == ErrorKind::TimedOut => {}
            Err(why) => {
                warn!("cannot take streams: {why}");
                return;
            }
        }
    }
}

/// `stranger` is a place among those who have proven nothing yet.
async fn serve_one(
    shared: &Shared,
    far: &Far,
    (stream, from): (DualStream, SocketAddr),
    stranger: Place,
    seats: &Places,
) {
    let number = shared.number();
    let mut dual = match AsyncDualStream::new(stream.clone()) {
        Ok(dual) => dual,
        Err(why) => {
            shared.note_refusal(&format!("#{number}: {from}"), &why.to_string());
            stream.shutdown(Shutdown::Both);
            return;
        }
    };
    let heard = speech::hear(&mut dual, shared.settings.key.as_ref()).await;
    // Whoever has proven nothing keeps its place while the last words travel, or it could hold any
    // number of streams meanwhile.
    let has_proven = matches!(heard, Ok(Some(_)));
    let _stranger = (!has_proven).then_some(stranger);
    let why: SpeechError = match heard {
        Ok(Some(heard)) => {
            let place = take_seat(shared, seats, &stream, from).await;
            let server = match (&place, forward(far, &heard.service)) {
                (None, _) => Err(Verdict::Busy),
                (_, None) => Err(Verdict::NoService),
                (Some(_), Some(forward)) => connect(forward).await.map_err(|why| verdict(&why)),
            };
            let verdict = server.as_ref().map_or_else(|verdict| *verdict, |_| Verdict::Connected);
            match (heard.answer(&mut dual, verdict).await, server) {
                (Ok(()), Ok(server)) => {
                    let to = server.peer_addr().map_or_else(|_| "a server".to_owned(), |it| it.to_string());
                    info!("#{number}: {from} is connected to {to}");
                    carry(number, server, dual, shared.orders()).await;
                    return;
                }
                (Err(why), server) => {
                    if let Ok(server) = server {
                        reset(&server);
                    }
                    why
                }
                (Ok(()), Err(verdict)) => SpeechError::Refused(verdict),
            }
        }
        Ok(None) => SpeechError::Refused(Verdict::NoProof),
        Err(why) => why,
    };
    shared.note_refusal(&format!("#{number}: {from}"), &why.to_string());
    // The answer has to get there first; the near end lets go then.
    let _ = timeout(LETTING_GO.to_std(), let_go(&mut dual)).await;
    stream.shutdown(Shutdown::Both);
}

/// A place among the connections that there may be, if there is one.
async fn take_seat(
    shared: &Shared,
    seats: &Places,
    stream: &DualStream,
    from: SocketAddr,
) -> Option<(Place, OwnedSemaphorePermit)> {
    let standing = if shared.settings.key.is_some() { Standing::Proven } else { Standing::Unproven };
    let twin = stream.clone();
    let seat = seats.enter(from.ip(), standing, move || twin.shutdown(Shutdown::Both)).ok()?;
    // A connection whose seat was taken away needs a moment to end.
    let place = timeout(GIVING_WAY.to_std(), shared.places.clone().acquire_owned()).await.ok()?.ok()?;
    (!shared.is_stopping()).then_some((seat, place))
}

/// Reads until the other end is gone.
async fn let_go(dual: &mut AsyncDualStream) {
    let mut dropped = tokio::io::sink();
    let _ = tokio::io::copy(dual, &mut dropped).await;
}

fn forward<'a>(far: &'a Far, service: &str) -> Option<&'a Forward> {
    far.forwards.iter().find(|forward| forward.name == service)
}

async fn connect(forward: &Forward) -> io::Result<TcpStream> {
    let connecting = TcpStream::connect((&*forward.host, forward.port));
    let server = timeout(SERVER.to_std(), connecting).await.map_err(|_| ErrorKind::TimedOut)??;
    prepare(&server);
    Ok(server)
}

fn verdict(why: &io::Error) -> Verdict {
    match why.kind() {
        ErrorKind::ConnectionRefused => Verdict::Refused,
        ErrorKind::TimedOut => Verdict::TimedOut,
        _ => Verdict::Unreachable,
    }
}

/// Connections at the same time. With a key everybody who has a seat has proven it. Without one an
/// address may have all of them until another one comes.
fn seats(most: usize) -> Limits {
    let all = most.max(1);
    Limits { all, reserved: 0, per_host: all, per_site: all, at_share: AtShare::Refuse }
}

/// Streams accepted and not looked at.
const WAITING: usize = 16;
/// Streams that have proven nothing yet; each may take some seconds. A newcomer takes the place of
/// an older one, so that who is silent keeps nobody out.
const STRANGERS: Limits =
    Limits { all: 128, reserved: 0, per_host: 64, per_site: 96, at_share: AtShare::Evict };
/// Between looks at whether to stop.
const LOOK: Span = Span::from_millis(200);
/// For the near end to hear why it is turned away.
const LETTING_GO: Span = Span::from_secs(2);
/// For a connection whose seat was taken away to end.
const GIVING_WAY: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_pool::Pool;

    use super::*;

    /// Without a key one address held all connections for as long as it liked.
    #[test]
    fn an_address_that_took_all_connections_without_a_key_leaves_one_to_the_next() {
        let [first, second] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut pool = Pool::new(seats(4));
        for n in 0..4 {
            pool.enter(first, Standing::Unproven, n).unwrap();
        }
        assert!(pool.enter(first, Standing::Unproven, 4).is_err());
        assert_eq!(pool.enter(second, Standing::Unproven, 5).unwrap().evicted, Some(0));
        // Who has proven the key keeps its connection.
        let mut pool = Pool::new(seats(1));
        pool.enter(first, Standing::Proven, 0).unwrap();
        assert!(pool.enter(second, Standing::Proven, 1).is_err());
    }
}

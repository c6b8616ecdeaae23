//! One plain connection over one stream, from the first byte to the last.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Duration;

use netaware_dual::{Loss, Reason};
use netaware_io::clock;
use netaware_stream::{AsyncDualStream, DualStream, Event};
use netaware_units::Span;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use crate::end::reset;
use crate::orders::Orders;

/// Carries until both directions have ended or something fails; logs how it goes.
pub(crate) async fn carry(
    number: u64,
    mut local: TcpStream,
    mut dual: AsyncDualStream,
    mut orders: watch::Receiver<Orders>,
) {
    let stream = dual.stream().clone();
    let began_at = clock::now();
    let mut wishes = orders.borrow().wishes;
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let copied = {
        let copying = copy_bidirectional_with_sizes(&mut local, &mut dual, BLOCK, BLOCK);
        tokio::pin!(copying);
        loop {
            tokio::select! {
                copied = &mut copying => break copied,
                _ = tick.tick() => tell(number, &stream),
                changed = orders.changed() => {
                    let now = *orders.borrow_and_update();
                    if changed.is_err() || now.give_up {
                        break Err(io::Error::other("the relay ends"));
                    }
                    if let Some(to) = now.wished.filter(|_| now.wishes != wishes) {
                        wishes = now.wishes;
                        if let Err(why) = stream.switch(to) {
                            warn!("#{number}: does not go over to {}: {why}", to.name());
                        }
                    }
                }
            }
        }
    };
    let took = clock::now() - began_at;
    match copied {
        Ok((from_local, to_local)) => {
            let last = stream.clone();
            // What was given to the stream has to get there before this end may go.
            let finished = spawn_blocking(move || settle(&last)).await;
            tell(number, &stream);
            match finished.map_err(io::Error::other).and_then(|finished| finished) {
                Ok(()) => info!(
                    "#{number}: ended after {took}: {from_local} bytes from here, {to_local} bytes to here"
                ),
                Err(why) => {
                    // It no longer counts among the connections, so it must not be kept either.
                    stream.shutdown(Shutdown::Both);
                    warn!("#{number}: the other relay may lack the last bytes: {why}");
                }
            }
        }
        Err(why) => {
            tell(number, &stream);
            abandon(&local, &stream);
            warn!("#{number}: broken off after {took}: {why}");
        }
    }
}

/// Waits until the other relay has everything, as long as it gets more.
fn settle(stream: &DualStream) -> io::Result<()> {
    let acknowledged = || stream.status().acknowledged;
    while_it_moves(acknowledged, || stream.finish(clock::now() + SETTLING))
}

/// Waits again each time that the time was over and more had been acknowledged meanwhile.
fn while_it_moves(acknowledged: impl Fn() -> u64, wait: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        let before = acknowledged();
        match wait() {
            Err(why) if why.kind() == ErrorKind::TimedOut && acknowledged() > before => {}
            ended => return ended,
        }
    }
}

/// Both sides are told that this was no regular end.
pub(crate) fn abandon(local: &TcpStream, stream: &DualStream) {
    reset(local);
    stream.shutdown(Shutdown::Both);
}

/// Logs what has happened to the stream since the last time.
fn tell(number: u64, stream: &DualStream) {
    for decision in stream.decisions() {
        info!("#{number}: {decision}");
    }
    for happened in stream.happened() {
        match happened.event {
            Event::Turning { from, to, reason, again, .. } => {
                let why = match reason {
                    Reason::OwnWish => "this end wants it",
                    Reason::PeersWish => "the other end wants it",
                    Reason::Loss => "the connection is lost",
                };
                let again = if again > 0 { format!("; {again} bytes go again") } else { String::new() };
                info!("#{number}: goes over from {} to {}: {why}{again}", from.name(), to.name());
            }
            Event::Turned { to, took } => info!("#{number}: is on {} after {took}", to.name()),
            Event::Down { ip, why, .. } => {
                let why = match why {
                    Loss::Ended => "it was ended",
                    Loss::Silent => "it acknowledges nothing",
                    Loss::PeerSaid => "the other end gave it up",
                    Loss::Replaced => "there is a new one",
                };
                info!("#{number}: lost its connection over {}: {why}", ip.name());
            }
            Event::Up { ip, .. } => debug!("#{number}: has a connection over {}", ip.name()),
            Event::WishEnded { outcome, .. } => debug!("#{number}: its wish has ended: {outcome:?}"),
            Event::Pong { .. } => {}
        }
    }
}

/// Bytes at a time, each way.
const BLOCK: usize = 64 * 1024;
/// Between looks at what happened to a stream.
const LOOK: Duration = Duration::from_millis(200);
/// For the last bytes, without any of them being acknowledged.
const SETTLING: Span = Span::from_secs(30);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_stream_that_drains_for_longer_than_one_wait_is_waited_for_again() {
        let acknowledged = Cell::new(7);
        let late = || -> io::Result<()> { Err(ErrorKind::TimedOut.into()) };
        let done = while_it_moves(
            || acknowledged.get(),
            || {
                acknowledged.set(acknowledged.get() + 1);
                if acknowledged.get() < 10 { late() } else { Ok(()) }
            },
        );
        assert!(done.is_ok() && acknowledged.get() == 10);

        let waits = Cell::new(0);
        let stuck = while_it_moves(
            || acknowledged.get(),
            || {
                waits.set(waits.get() + 1);
                late()
            },
        );
        assert_eq!((stuck.unwrap_err().kind(), waits.get()), (ErrorKind::TimedOut, 1));

        let broken = while_it_moves(
            || acknowledged.replace(acknowledged.get() + 1),
            || Err(ErrorKind::ConnectionReset.into()),
        );
        assert_eq!(broken.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

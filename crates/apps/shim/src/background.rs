//! The race of a socket that does not block: begun in the call, watched by a thread.
//!
//! The program waits for its number to become writable, in whatever way it likes. As long as its
//! own attempt may succeed nothing happens to it; [`crate::claims`] moves it when another one has
//! won.

use netaware_io::clock;
use netaware_io::signals::block_all;
use netaware_units::Span;

use crate::begin::Connected;
use crate::claims;
use crate::disguise;
use crate::guard::always_busy;
use crate::race::{Race, Standing};
use crate::socket::{Stage, stage};
use crate::system::wait_to_write;
use crate::told;

/// What the program's call returns. Asks no resolver, since the program must not wait.
pub(crate) fn begin(mut race: Race) -> Connected {
    match race.advance_without_lookup(clock::now()) {
        Standing::Won(number) => {
            let placed = race.place(number);
            told::ended(&race, Some(number), None);
            return if placed { race.as_told(number) } else { Err(libc::EBADF) };
        }
        Standing::Lost(errno) => {
            told::ended(&race, None, None);
            return Err(errno);
        }
        Standing::Wait(_) => {}
    }
    if let Some(first) = race.first_under_way().filter(|_| !race.own_is_under_way())
        && !race.place(first)
    {
        return Err(libc::EBADF);
    }
    if claims::claim(&race.movable) {
        let movable = race.movable;
        let thread = std::thread::Builder::new().name("netaware-race".into()).stack_size(STACK);
        let spawned = thread.spawn(move || {
            block_all();
            always_busy();
            watch(race);
        });
        if spawned.is_err() {
            claims::end(&movable);
        }
    }
    Err(libc::EINPROGRESS)
}

fn watch(mut race: Race) {
    let movable = race.movable;
    let ends_at = race.began_at + LONGEST;
    loop {
        let now = clock::now();
        if now > ends_at || !claims::holds(&movable) {
            break;
        }
        match stage(movable.fd) {
            Some(Stage::Connecting) => {}
            Some(Stage::Up) => {
                race.own_ended(Ok(()));
                let own = (0..race.attempts.len()).find(|number| race.is_own(*number));
                told::ended(&race, own, Some(race.began_at));
                break;
            }
            // The program finds the reason at its socket.
            _ => {
                race.own_ended(Err(libc::ECONNREFUSED));
                told::left(&race);
                break;
            }
        }
        race.observe(false);
        match race.advance(now) {
            Standing::Won(number) => {
                race.settled(number);
                let winner = race.release(number);
                race.disguise(number, winner);
                if claims::move_to(&movable, winner) {
                    told::ended(&race, Some(number), None);
                } else {
                    disguise::take_off(winner);
                    crate::system::close_own(winner);
                }
                return;
            }
            Standing::Lost(_) => break,
            Standing::Wait(until) => {
                let mut polled = race.under_way(false);
                if polled.is_empty() && until.is_none() {
                    // Nothing is left to try beside the program's own attempt.
                    break;
                }
                let span = until.map(|until| until - now);
                let most = if polled.is_empty() { None } else { Some(SLICE) };
                let span = [span, most].into_iter().flatten().min();
                let _ = wait_to_write(&mut polled, span.map(Span::nanos));
            }
        }
    }
    claims::end(&movable);
}

/// The program's number is not waited for but looked at that often: waiting would keep it open
/// after the program closed it.
const SLICE: Span = Span::from_millis(5);
/// The system's own attempts end by then (tcp_syn_retries).
const LONGEST: Span = Span::from_secs(150);
/// A resolver's modules may want some.
const STACK: usize = 512 * 1024;

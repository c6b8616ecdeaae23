//! What only the owner sees: who is here, who waits, and how the host does.
//!
//! Without a key the owner is whoever asks from this very host. With a key it is whoever has opened
//! a session over TLS that proved to know it: the owner's token, which such a session is told and
//! no other, goes into the request. The token of a session is another one, since that travels in
//! the clear. Where the owner gave names ([`crate::Config::names`]) a reverse proxy on this host
//! brings strangers over loopback, so that without a key nobody is the owner. Nor is whoever comes
//! with a header of a proxy; one that adds none and puts its own name into `Host` is not noticed.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_host::{CpuSnapshot, Load, Memory};
use netaware_io::clock;
use netaware_io::zone::ZonedIp;
use netaware_units::{Mono, Span};
use netaware_wire::OwnerToken;
use serde::Serialize;

use super::{Connection, Listed, problem};
use crate::admission::{Outlook, SessionId};
use crate::roster::{Guest, Occupation};

#[derive(Serialize)]
struct View {
    software: String,
    host: String,
    /// Since the responder was started.
    uptime: Span,
    sessions: Vec<Session>,
    queue: Queue,
    /// The newest first; absent where none are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<Listed>>,
    health: Health,
}

#[derive(Serialize)]
struct Session {
    peer: SocketAddr,
    software: String,
    /// Since it stands.
    lasting: Span,
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Test {
    what: Occupation,
    /// Since it was opened.
    lasting: Span,
}

#[derive(Serialize)]
struct Queue {
    /// Throughput measurements at the same time.
    slots: usize,
    held: Vec<Place>,
    /// In order.
    waiting: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    /// Several where one prober measures over both IP versions.
    peers: Vec<SocketAddr>,
    /// Of what is held: until it should be free; of what waits: until its turn.
    expected: Span,
}

#[derive(Serialize)]
struct Health {
    cores: u32,
    /// Mean over cores since somebody last looked, 0 to 1; absent at the first look.
    cpu: Option<f64>,
    /// Of this process, in cores.
    process: Option<f64>,
    /// Share withheld by the hypervisor.
    steal: Option<f64>,
    load: Option<Load>,
    memory: Option<Memory>,
}

/// What the processors had done when somebody last looked.
#[derive(Debug, Default)]
pub(crate) struct LastLook(Mutex<Option<(CpuSnapshot, Mono)>>);

impl LastLook {
    fn health(&self) -> Health {
        let (seen, now) = (CpuSnapshot::take(), clock::now());
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = last.as_ref().map(|(before, at)| seen.use_since(before, now - *at));
        *last = Some((seen, now));
        Health {
            cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u32),
            cpu: used.and_then(|used| used.host),
            process: used.and_then(|used| Some(used.process_user? + used.process_system?)),
            steal: used.and_then(|used| used.steal),
            load: Load::read(),
            memory: Memory::read(),
        }
    }
}

/// Whether this request may see what is the owner's.
pub(super) fn is_owners(connection: &Connection, headers: &HeaderMap) -> bool {
    let context = &connection.context;
    if context.rules.key.is_none() {
        let is_here = connection.peer.ip().to_canonical().is_loopback();
        return is_here && context.config.names.is_empty() && !is_passed_on(headers);
    }
    connection.is_encrypted && token(headers).is_some_and(|token| context.roster.knows_owner(token))
}

/// Whether a proxy says that it passes the request on for somebody else.
fn is_passed_on(headers: &HeaderMap) -> bool {
    OF_PROXIES.iter().any(|name| headers.contains_key(*name))
}

fn token(headers: &HeaderMap) -> Option<OwnerToken> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?.trim().parse().ok()
}

pub(super) fn not_yours(connection: &Connection) -> Response {
    let why = if connection.context.rules.key.is_some() {
        "this is for the owner: give the key"
    } else if !connection.context.config.names.is_empty() {
        "this is for the owner: with --name whoever comes from this host may be a reverse proxy, so start \
         'netaware serve' with --key-file and --tls and give the key"
    } else {
        "this is for the owner: open the page on the responder's own host (http://localhost and its port), or start \
         'netaware serve' with --key-file and --tls and give the key"
    };
    problem(StatusCode::FORBIDDEN, why)
}

pub(super) async fn view(State(connection): State<Connection>, headers: HeaderMap) -> Response {
    if !is_owners(&connection, &headers) {
        return not_yours(&connection);
    }
    let context = &connection.context;
    let now = clock::now();
    let guests = context.roster.guests();
    let results = match &context.shelf {
        Some(shelf) => shelf.newest(MOST_RESULTS).await,
        None => None,
    };
    let view = View {
        software: context.rules.software.clone(),
        host: context.host(ZonedIp::of(connection.local)).name,
        uptime: now - context.began_at,
        queue: queue(&context.outlook(now), &guests),
        sessions: guests.into_iter().map(|guest| session(guest, now)).collect(),
        results,
        health: context.last_look.health(),
    };
    ([(header::CACHE_CONTROL, "no-store")], Json(view)).into_response()
}

fn session(guest: Guest, now: Mono) -> Session {
    let tests = guest.tests.into_values().map(|(what, at)| Test { what, lasting: now - at }).collect();
    Session { peer: guest.peer, software: guest.software, lasting: now - guest.since, tests }
}

fn queue(outlook: &Outlook, guests: &[Guest]) -> Queue {
    let peers = |sessions: &[SessionId]| {
        let is_one = |guest: &&Guest| guest.ticket.is_some_and(|ticket| sessions.contains(&ticket));
        guests.iter().filter(is_one).map(|guest| guest.peer).collect()
    };
    let place =
        |(sessions, expected): &(Vec<SessionId>, Span)| Place { peers: peers(sessions), expected: *expected };
    Queue {
        slots: outlook.slots,
        held: outlook.held.iter().map(place).collect(),
        waiting: outlook.waiting.iter().map(place).collect(),
    }
}

const MOST_RESULTS: u32 = 10;
/// RFC 7239, RFC 9110 §7.6.3, and what proxies add in fact.
const OF_PROXIES: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// A reverse proxy on this host that gave its own name as `Host` made strangers the owner.
    #[test]
    fn who_comes_through_a_proxy_on_this_host_is_not_the_owner() {
        let with = |name: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:14233"));
            headers.insert(name, HeaderValue::from_static("198.51.100.7"));
            is_passed_on(&headers)
        };
        for name in OF_PROXIES {
            assert!(with(name), "{name}");
        }
        assert!(!with("accept") && !with("user-agent"));
    }
}

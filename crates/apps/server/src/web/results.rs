//! Results that pages send and read, where the responder's owner has named a file for them.
//!
//! Records of a page are those of any other command. They are somebody's words, so they are read
//! into the schema and written from it, are bounded, and come no faster than people measure. What a
//! page of the owner sends is kept with the owner's results; what a stranger's page sends is kept
//! apart, within a room of its own, so that nothing of the owner's makes way for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_io::clock;
use netaware_pool::Host;
use netaware_record::{Document as _, Record};
use netaware_units::{Mono, Span, Wall};
use serde::{Deserialize, Serialize};

use super::{Connection, owner, problem};

/// Where results of pages are kept. Its calls may wait for a disk.
pub trait Results: std::fmt::Debug + Send + Sync {
    /// The newest first, `limit` at most.
    ///
    /// # Errors
    /// They cannot be read, in words for whoever asks.
    fn list(&self, limit: u32) -> Result<Vec<Listed>, String>;

    /// Those of one series, the newest first, `limit` at most; none where the store knows of no
    /// series.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn list_series(&self, _series: uuid::Uuid, _limit: u32) -> Result<Vec<Listed>, String> {
        Ok(Vec::new())
    }

    /// One of them; `None` where there is none.
    fn get(&self, id: uuid::Uuid) -> Option<Record>;

    /// Keeps one.
    ///
    /// # Errors
    /// See [`KeepError`].
    fn keep(&self, record: &Record, sender: Sender) -> Result<(), KeepError>;
}

/// Whose page sends a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The owner's.
    Owner,
    /// Anybody's. What is kept of it takes room of its own, which is bounded.
    Stranger,
}

/// Why a result is not kept, in words for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepError {
    /// There is no room.
    Full(String),
    /// It is there already, or the store takes nothing.
    Refused(String),
}

/// A result without its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// UUIDv7.
    pub id: uuid::Uuid,
    /// By the wall clock of who measured.
    pub started_at: Wall,
    /// How long it took.
    pub elapsed: Span,
    /// `test`, `tcp`, …
    pub command: String,
    /// As it was named there.
    pub host: String,
    /// Given by the person who measured.
    pub label: Option<String>,
}

/// Results, and how many more may come now.
#[derive(Debug)]
pub(crate) struct Shelf {
    results: Arc<dyn Results>,
    allowances: Mutex<Allowances>,
}

impl Shelf {
    pub(crate) fn new(results: Arc<dyn Results>) -> Self {
        Self { results, allowances: Mutex::new(Allowances::new(clock::now())) }
    }

    /// `None` where they cannot be read.
    pub(super) async fn newest(&self, limit: u32) -> Option<Vec<Listed>> {
        let results = Arc::clone(&self.results);
        tokio::task::spawn_blocking(move || results.list(limit)).await.ok()?.ok()
    }

    fn may_take(&self, now: Mono, from: IpAddr, sender: Sender) -> bool {
        self.allowances.lock().unwrap_or_else(PoisonError::into_inner).take(now, from, sender)
    }
}

/// Who may send how many.
#[derive(Debug)]
struct Allowances {
    owner: Allowance,
    /// Of all of them.
    strangers: Allowance,
    /// Of each who has sent something of late.
    hosts: HashMap<Host, Allowance>,
}

impl Allowances {
    fn new(now: Mono) -> Self {
        let full = |pace| Allowance::full(pace, now);
        Self { owner: full(OF_OWNER), strangers: full(OF_STRANGERS), hosts: HashMap::new() }
    }

    fn take(&mut self, now: Mono, from: IpAddr, sender: Sender) -> bool {
        if sender == Sender::Owner {
            return self.owner.take(now);
        }
        // Who may send as many as at first needs not be remembered.
        self.hosts.retain(|_, allowance| !allowance.is_full(now));
        let host = Host::of(from);
        let mut own = self.hosts.get(&host).copied().unwrap_or_else(|| Allowance::full(OF_HOST, now));
        // What a host may not send costs the others nothing.
        let may = own.take(now) && self.strangers.take(now);
        if may && (self.hosts.len() < MOST_HOSTS || self.hosts.contains_key(&host)) {
            self.hosts.insert(host, own);
        }
        may
    }
}

/// So many at once, and one more each so often.
#[derive(Debug, Clone, Copy)]
struct Pace {
    burst: u32,
    every: Span,
}

/// What is left of it.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    pace: Pace,
    left: u32,
    since: Mono,
}

impl Allowance {
    fn full(pace: Pace, now: Mono) -> Self {
        Self { pace, left: pace.burst, since: now }
    }

    fn take(&mut self, now: Mono) -> bool {
        let earned = self.earned(now);
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(self.pace.burst);
            self.since = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    fn is_full(&self, now: Mono) -> bool {
        self.left.saturating_add(self.earned(now)) >= self.pace.burst
    }

    fn earned(&self, now: Mono) -> u32 {
        let earned = (now - self.since).or_zero().0 / self.pace.every.0;
        earned.min(i64::from(self.pace.burst)) as u32
    }
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    limit: Option<u32>,
    /// Only those of this one.
    series: Option<uuid::Uuid>,
}

impl Wanted {
    fn of(&self, results: &dyn Results) -> Result<Vec<Listed>, String> {
        let limit = self.limit.unwrap_or(MOST_LISTED).min(MOST_LISTED);
        match self.series {
            Some(series) => results.list_series(series, limit),
            None => results.list(limit),
        }
    }
}

/// The newest first, without their figures.
pub(super) async fn list(
    State(connection): State<Connection>,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Response {
    if is_kept_from(&connection, &headers) {
        return owner::not_yours(&connection);
    }
    with_results(connection, move |results| match wanted.of(results) {
        Ok(found) => unkept(Json(found)),
        Err(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why),
    })
    .await
}

pub(super) async fn read(
    State(connection): State<Connection>,
    headers: HeaderMap,
    Path(id): Path<uuid::Uuid>,
) -> Response {
    if is_kept_from(&connection, &headers) {
        return owner::not_yours(&connection);
    }
    with_results(connection, move |results| match results.get(id) {
        Some(record) => unkept(Json(record)),
        None => problem(StatusCode::NOT_FOUND, "there is no such result here"),
    })
    .await
}

pub(super) async fn keep(State(connection): State<Connection>, headers: HeaderMap, body: Body) -> Response {
    if is_kept_from(&connection, &headers) {
        pass_over(body).await;
        return owner::not_yours(&connection);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // A form of somebody else's page cannot send this type.
    if !kind.starts_with("application/json") {
        pass_over(body).await;
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a result is sent as application/json");
    }
    let Some(shelf) = &connection.context.shelf else {
        pass_over(body).await;
        return nothing_is_kept();
    };
    let sender = if owner::is_owners(&connection, &headers) { Sender::Owner } else { Sender::Stranger };
    let body = match taken_in(&connection, sender, body).await {
        Ok(body) => body,
        Err((status, why)) => return problem(status, &why),
    };
    let record = match Record::from_json(&body) {
        Ok(record) => record,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &format!("no record: {error}")),
    };
    if !shelf.may_take(clock::now(), connection.peer.ip(), sender) {
        return problem(StatusCode::TOO_MANY_REQUESTS, "too many results; try again in a minute");
    }
    with_results(connection, move |results| match kept(results, &record, sender) {
        Ok(()) => (StatusCode::CREATED, Json(serde_json::json!({ "id": record.id }))).into_response(),
        Err(KeepError::Full(why)) => problem(StatusCode::INSUFFICIENT_STORAGE, &why),
        Err(KeepError::Refused(why)) => problem(StatusCode::CONFLICT, &why),
    })
    .await
}

/// Reads a result into memory, of which all strangers together have the same however many they are.
async fn taken_in(
    connection: &Connection,
    sender: Sender,
    body: Body,
) -> Result<Bytes, (StatusCode, String)> {
    let whole = to_bytes(body, LONGEST_RECORD);
    let read = if sender == Sender::Owner {
        whole.await
    } else {
        let too_many = || {
            let why = "too many results come at the same time; try again";
            (StatusCode::TOO_MANY_REQUESTS, why.to_owned())
        };
        let upload = connection.context.pools.upload(connection.peer.ip());
        let (_place, mut eviction) = upload.map_err(|_| too_many())?;
        tokio::select! {
            read = whole => read,
            () = eviction.happened() => return Err(too_many()),
        }
    };
    let too_long = || format!("a result has at most {LONGEST_RECORD} bytes");
    read.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, too_long()))
}

/// Who is refused and has said all already hears why, and not that the connection broke. No more is
/// read of whoever says much.
async fn pass_over(body: Body) {
    let _ = to_bytes(body, MOST_PASSED_OVER).await;
}

/// What stands in few bytes of JSON may be long once all that it leaves out is written.
fn kept(results: &dyn Results, record: &Record, sender: Sender) -> Result<(), KeepError> {
    let is_long = || !record.to_json().is_ok_and(|json| json.len() <= LONGEST_KEPT);
    if sender == Sender::Stranger && is_long() {
        return Err(KeepError::Refused(format!("a result has at most {LONGEST_KEPT} bytes")));
    }
    results.keep(record, sender)
}

/// With a key nobody else gets anything.
fn is_kept_from(connection: &Connection, headers: &HeaderMap) -> bool {
    connection.context.rules.key.is_some() && !owner::is_owners(connection, headers)
}

/// The event loop serves everybody and must not wait for a disk.
async fn with_results(
    connection: Connection,
    work: impl FnOnce(&dyn Results) -> Response + Send + 'static,
) -> Response {
    let Some(shelf) = &connection.context.shelf else { return nothing_is_kept() };
    let results = Arc::clone(&shelf.results);
    let done = tokio::task::spawn_blocking(move || work(&*results));
    done.await.unwrap_or_else(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the store failed"))
}

fn nothing_is_kept() -> Response {
    problem(StatusCode::FORBIDDEN, "no results are kept here; 'netaware serve --results' keeps them")
}

fn unkept(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], body).into_response()
}

/// With its samples over time; longer ones are no page's.
pub(super) const LONGEST_RECORD: usize = 512 << 10;
/// Of what nobody wants.
const MOST_PASSED_OVER: usize = 4096;
/// The same as it is written.
const LONGEST_KEPT: usize = 2 * LONGEST_RECORD;
const MOST_LISTED: u32 = 200;
/// A room full of people who have just measured.
const OF_STRANGERS: Pace = Pace { burst: 60, every: Span::from_secs(2) };
/// One who measures as fast as a page can, or several behind one address.
const OF_HOST: Pace = Pace { burst: 10, every: Span::from_secs(10) };
const OF_OWNER: Pace = OF_STRANGERS;
/// More do not come within the time in which one earns all again.
const MOST_HOSTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// Its lists tell what was asked for.
    #[derive(Debug)]
    struct Asked;

    impl Results for Asked {
        fn list(&self, limit: u32) -> Result<Vec<Listed>, String> {
            Err(format!("all, {limit}"))
        }

        fn list_series(&self, series: uuid::Uuid, limit: u32) -> Result<Vec<Listed>, String> {
            Err(format!("{series}, {limit}"))
        }

        fn get(&self, _id: uuid::Uuid) -> Option<Record> {
            None
        }

        fn keep(&self, _record: &Record, _sender: Sender) -> Result<(), KeepError> {
            Ok(())
        }
    }

    #[test]
    fn a_list_is_bounded_and_may_be_of_one_series() {
        let series = uuid::Uuid::from_u128(7);
        let asked = |limit, series| Wanted { limit, series }.of(&Asked).unwrap_err();
        assert_eq!(asked(None, None), "all, 200");
        assert_eq!(asked(Some(u32::MAX), Some(series)), format!("{series}, 200"));
    }

    #[test]
    fn results_come_no_faster_than_people_measure() {
        let at = |seconds: u64| Mono(1_000_000_000 * seconds);
        let mut allowance = Allowance::full(OF_STRANGERS, at(0));
        let burst = OF_STRANGERS.burst;
        assert!((0..burst).all(|_| allowance.take(at(0))));
        assert!(!allowance.take(at(1)));
        assert!(allowance.take(at(3)) && !allowance.take(at(3)));
        assert_eq!((0..1000).filter(|_| allowance.take(at(100_000))).count(), burst as usize);
    }

    /// One stranger wrote 77 MB into the owner's results in 41 s.
    #[test]
    fn a_stranger_who_floods_is_held_to_its_share_and_takes_nothing_from_the_owner() {
        let at = |seconds: u64| Mono(1_000_000_000 * seconds);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut allowances = Allowances::new(at(0));
        let taken = |allowances: &mut Allowances, second: u64, from: &str, sender: Sender| {
            (0..1000).filter(|_| allowances.take(at(second), address(from), sender)).count()
        };
        assert_eq!(taken(&mut allowances, 0, "2001:db8:0:1::1", Sender::Stranger), 10);
        assert_eq!(taken(&mut allowances, 0, "2001:db8:0:1:ffff::9", Sender::Stranger), 0, "the same /64");
        assert_eq!(taken(&mut allowances, 10, "2001:db8:0:1::1", Sender::Stranger), 1);
        // Many hosts have what all strangers have together; what they were refused cost nothing.
        let all: usize = (0..100)
            .map(|host| taken(&mut allowances, 10, &format!("192.0.2.{host}"), Sender::Stranger))
            .sum();
        assert_eq!(all, 60 - 10 + 5 - 1);
        assert_eq!(taken(&mut allowances, 10, "192.0.2.1", Sender::Owner), 60);
        assert!(allowances.hosts.len() <= MOST_HOSTS);
        allowances.take(at(100_000), address("192.0.2.1"), Sender::Stranger);
        assert_eq!(allowances.hosts.len(), 1, "nobody else is remembered");
    }

    #[test]
    fn a_record_that_grows_when_it_is_written_is_not_kept_of_a_stranger() {
        let record = Record { warnings: vec!["w".repeat(LONGEST_KEPT)], ..minimal() };
        assert!(matches!(kept(&Asked, &record, Sender::Stranger), Err(KeepError::Refused(_))));
        assert_eq!(kept(&Asked, &record, Sender::Owner), Ok(()));
        assert_eq!(kept(&Asked, &minimal(), Sender::Stranger), Ok(()));
    }

    fn minimal() -> Record {
        let least = serde_json::json!({
            "schema": 1, "id": "01990000-0000-7000-8000-000000000001", "software": "x", "command": "test",
            "started_at": 1, "started_at_utc": "1970-01-01T00:00:00Z", "elapsed": 1, "outcome": "complete",
            "request": {"host": "a", "port": 1, "own_responder": false}, "versions": [],
            "prober": {"name": "phone", "kernel": "", "cpu": "", "cores": 8, "software": "x"},
        });
        Record::from_json(least.to_string().as_bytes()).unwrap()
    }
}

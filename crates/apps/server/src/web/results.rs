//! Results that pages send and read, where the responder's owner has named a file for them.
//!
//! Records of a page are those of any other command: `netaware results` shows them. They are a
//! stranger's words, so they are read into the schema and written from it, are bounded, and come no
//! faster than people measure.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_io::clock;
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
    fn keep(&self, record: &Record) -> Result<(), KeepError>;
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
    allowance: Mutex<Allowance>,
}

impl Shelf {
    pub(crate) fn new(results: Arc<dyn Results>) -> Self {
        Self { results, allowance: Mutex::new(Allowance { left: BURST, since: clock::now() }) }
    }

    /// `None` where they cannot be read.
    pub(super) async fn newest(&self, limit: u32) -> Option<Vec<Listed>> {
        let results = Arc::clone(&self.results);
        tokio::task::spawn_blocking(move || results.list(limit)).await.ok()?.ok()
    }

    fn may_take(&self, now: Mono) -> bool {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }
}

/// So many at once, and one more each so often.
#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Mono,
}

impl Allowance {
    fn take(&mut self, now: Mono) -> bool {
        let earned = ((now - self.since).or_zero().0 / EARNED_EVERY.0).min(i64::from(BURST));
        if earned > 0 {
            self.left = (self.left + earned as u32).min(BURST);
            self.since = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
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

pub(super) async fn keep(State(connection): State<Connection>, headers: HeaderMap, body: Bytes) -> Response {
    if is_kept_from(&connection, &headers) {
        return owner::not_yours(&connection);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // A form of somebody else's page cannot send this type.
    if !kind.starts_with("application/json") {
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a result is sent as application/json");
    }
    let Some(shelf) = &connection.context.shelf else { return nothing_is_kept() };
    let record = match Record::from_json(&body) {
        Ok(record) => record,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &format!("no record: {error}")),
    };
    if !shelf.may_take(clock::now()) {
        return problem(StatusCode::TOO_MANY_REQUESTS, "too many results; try again in a minute");
    }
    with_results(connection, move |results| match results.keep(&record) {
        Ok(()) => (StatusCode::CREATED, Json(serde_json::json!({ "id": record.id }))).into_response(),
        Err(KeepError::Full(why)) => problem(StatusCode::INSUFFICIENT_STORAGE, &why),
        Err(KeepError::Refused(why)) => problem(StatusCode::CONFLICT, &why),
    })
    .await
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
const MOST_LISTED: u32 = 200;
/// A room full of people who have just measured.
const BURST: u32 = 60;
const EARNED_EVERY: Span = Span::from_secs(2);

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

        fn keep(&self, _record: &Record) -> Result<(), KeepError> {
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
        let mut allowance = Allowance { left: BURST, since: at(0) };
        assert!((0..BURST).all(|_| allowance.take(at(0))));
        assert!(!allowance.take(at(1)));
        assert!(allowance.take(at(3)) && !allowance.take(at(3)));
        assert_eq!((0..1000).filter(|_| allowance.take(at(100_000))).count(), BURST as usize);
    }
}

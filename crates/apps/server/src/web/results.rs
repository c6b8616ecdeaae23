//! Results that pages send and read, where the responder's owner has named a file for them.
//!
//! Records of a page are those of any other command: `netaware results` shows them. They are a stranger's words, so they are read into the
//! schema and written from it, are bounded, and come no faster than people measure.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_io::clock;
use netaware_record::Record;
use netaware_store::{Filter, SaveError, Store};
use netaware_units::{Mono, Span};
use serde::{Deserialize, Serialize};

use super::{Connection, problem};

/// Where results are, and how many more may come now.
#[derive(Debug)]
pub(crate) struct Shelf {
    file: PathBuf,
    allowance: Mutex<Allowance>,
}

impl Shelf {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, allowance: Mutex::new(Allowance { left: BURST, since: clock::now() }) }
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

#[derive(Serialize)]
struct Listed {
    id: String,
    started_at: i64,
    elapsed: Span,
    command: String,
    host: String,
    label: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    limit: Option<u32>,
}

/// The newest first, without their figures.
pub(super) async fn list(State(connection): State<Connection>, Query(wanted): Query<Wanted>) -> Response {
    let limit = wanted.limit.unwrap_or(MOST_LISTED).min(MOST_LISTED);
    with_store(connection, move |store| match store.list(&Filter::default(), limit) {
        Ok(found) => {
            let listed = found.into_iter().map(|summary| Listed {
                id: summary.id.to_string(),
                started_at: summary.started_at.0,
                elapsed: summary.elapsed,
                command: summary.command,
                host: summary.host,
                label: summary.label,
            });
            unkept(Json(listed.collect::<Vec<_>>()))
        }
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    })
    .await
}

pub(super) async fn read(State(connection): State<Connection>, Path(id): Path<uuid::Uuid>) -> Response {
    with_store(connection, move |store| match store.get(&id.to_string()) {
        Ok(record) => unkept(Json(record)),
        Err(_) => problem(StatusCode::NOT_FOUND, "there is no such result here"),
    })
    .await
}

pub(super) async fn keep(State(connection): State<Connection>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // A form of somebody else's page cannot send this type.
    if !kind.starts_with("application/json") {
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a result is sent as application/json");
    }
    let Some(shelf) = &connection.context.shelf else { return nothing_is_kept() };
    let record = match serde_json::from_slice::<Record>(&body) {
        Ok(record) => record,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &format!("no record: {error}")),
    };
    if !shelf.may_take(clock::now()) {
        return problem(StatusCode::TOO_MANY_REQUESTS, "too many results; try again in a minute");
    }
    with_store(connection, move |store| match store.save(&record) {
        Ok(()) => (StatusCode::CREATED, Json(serde_json::json!({ "id": record.id }))).into_response(),
        Err(error @ SaveError::DiskFull { .. }) => {
            problem(StatusCode::INSUFFICIENT_STORAGE, &error.to_string())
        }
        Err(error) => problem(StatusCode::CONFLICT, &error.to_string()),
    })
    .await
}

/// The event loop serves everybody and must not wait for a disk.
async fn with_store(
    connection: Connection,
    work: impl FnOnce(&Store) -> Response + Send + 'static,
) -> Response {
    let Some(shelf) = &connection.context.shelf else {
        return problem(
            StatusCode::FORBIDDEN,
            "no results are kept here; 'netaware serve --results' keeps them",
        );
    };
    let file = shelf.file.clone();
    let done = tokio::task::spawn_blocking(move || match Store::open(&file) {
        Ok(store) => work(&store),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    });
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

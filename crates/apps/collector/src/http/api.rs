//! What programs ask, under `/api/v1`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_record::passive::{CaptureLoss, DelayRow, Period, Quantiles, Row};
use netaware_store::fleet::{Cursor, DelayPoint, DelayQuery, Kind, MOST_ITEMS, RowQuery, StoredRow};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::Suppression;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem;
use crate::config::{Config, TaskRule};
use crate::controller::ApplyError;
use crate::desk::Errand;
use crate::held;
use crate::plan::plan;
use crate::shared::Shared;

type Here = State<Arc<Shared>>;

/// How the collector is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct Health {
    /// Version of netaware.
    pub(super) version: String,
    /// Since when it runs.
    pub(super) started_at: Wall,
    /// Number of the configuration that runs.
    pub(super) number: u64,
    /// What the store last refused with, if it does not work at present.
    pub(super) trouble: Option<String>,
    /// Rows that wait on this host for a store elsewhere.
    pub(super) waiting_rows: u64,
    /// Rows that were given up because that buffer was full.
    pub(super) given_up_rows: u64,
}

/// Delays of one pair in one time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct DelayView {
    /// The join, or the task that measured.
    pub(super) task: String,
    /// From the first row in it to the end of the last.
    pub(super) period: Period,
    /// Mean, ns; `null` without a matched packet.
    pub(super) mean: Option<Span>,
    /// Median, ns.
    pub(super) p50: Option<Span>,
    /// 95th percentile, ns.
    pub(super) p95: Option<Span>,
    /// 99th percentile, ns.
    pub(super) p99: Option<Span>,
    /// Delay variation D - D(min) (PDV, RFC 5481), which needs no clocks that agree.
    pub(super) pdv: Quantiles,
    /// Delays with what was lost as infinitely late (RFC 7679); `null`: infinite.
    pub(super) with_losses: Quantiles,
    /// Lost of those of which it is known whether they came, 0..1; `null` where that is none.
    pub(super) loss: Option<f64>,
    /// The figures.
    pub(super) row: DelayRow,
}

impl From<DelayPoint> for DelayView {
    fn from(point: DelayPoint) -> Self {
        let DelayPoint { task, period, row, .. } = point;
        let Quantiles { p50, p95, p99 } = row.delay.quantiles();
        let (pdv, with_losses) = (row.delay.variation_quantiles(), row.quantiles_with_losses());
        let (mean, loss) = (row.delay.mean(), row.loss_ratio());
        Self { task, period, mean, p50, p95, p99, pdv, with_losses, loss, row }
    }
}

/// A page of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct DelayPage {
    /// Oldest first.
    pub(super) items: Vec<DelayView>,
    /// To be given as `after` for the next page; `null`: this was the last.
    pub(super) next: Option<String>,
}

/// A row of another kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct RowView {
    /// Who saw it.
    pub(super) probe: String,
    /// The task.
    pub(super) task: String,
    /// Its time.
    pub(super) period: Period,
    /// The figures.
    pub(super) row: Row,
    /// How far they lean low: what the capture behind them lost in that time.
    #[serde(default, skip_serializing_if = "CaptureLoss::is_nothing")]
    pub(super) lost: CaptureLoss,
}

/// A page of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct RowPage {
    /// Oldest first.
    pub(super) items: Vec<RowView>,
    /// To be given as `after` for the next page; `null`: this was the last.
    pub(super) next: Option<String>,
}

/// What was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct Applied {
    /// Number of the configuration that runs now.
    pub(super) number: u64,
    /// What it changed.
    pub(super) plan: crate::Plan,
}

/// Where the configuration is.
pub(super) const CONFIG: &str = "/api/v1/config";

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/health", get(health))
        .route("/api/v1/probes", get(probes))
        .route("/api/v1/probes/{name}", get(probe))
        .route(CONFIG, get(config).put(apply))
        .route("/api/v1/plan", axum::routing::post(planned))
        .route("/api/v1/tasks", get(tasks))
        .route("/api/v1/tasks/{name}", get(task).put(put_task).delete(delete_task))
        .route("/api/v1/suppression", get(suppression).put(suppress).delete(unsuppress))
        .route("/api/v1/joins", get(joins))
        .route("/api/v1/runs", get(runs))
        .route("/api/v1/latest", get(latest))
        .route("/api/v1/delays", get(delays))
        .route("/api/v1/rows/{kind}", get(rows))
}

async fn health(State(shared): Here) -> Json<Health> {
    let backlog = shared.desk.backlog.read();
    Json(Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: shared.started_at,
        number: shared.controller.running().number,
        trouble: held(&shared.desk.trouble).clone().or(backlog.trouble),
        waiting_rows: backlog.rows,
        given_up_rows: backlog.given_up,
    })
}

async fn probes(State(shared): Here) -> Response {
    Json(shared.roster.views()).into_response()
}

async fn probe(State(shared): Here, Path(name): Path<String>) -> Response {
    match shared.roster.view(&name) {
        Some(view) => Json(view).into_response(),
        None => problem(StatusCode::NOT_FOUND, "there is no probe of this name"),
    }
}

async fn config(State(shared): Here) -> Response {
    match shared.controller.running().config.shown() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/toml")], text).into_response(),
        Err(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

async fn planned(State(shared): Here, text: String) -> Response {
    match shared.controller.read(&text) {
        Ok(then) => Json(plan(&shared.controller.running().config, &then)).into_response(),
        Err(why) => refused(&why),
    }
}

async fn apply(State(shared): Here, text: String) -> Response {
    let then = shared.controller.read(&text);
    change(&shared, |_| then).await
}

async fn change(shared: &Shared, change: impl FnOnce(&Config) -> Result<Config, ApplyError>) -> Response {
    let before = shared.controller.running();
    match shared.controller.change(change) {
        Ok(number) => {
            let now = shared.controller.running();
            shared.follow(&now.config);
            shared.bring(Errand::Follow(Box::new(now.config.clone()))).await;
            Json(Applied { number, plan: plan(&before.config, &now.config) }).into_response()
        }
        Err(why) => refused(&why),
    }
}

fn refused(why: &ApplyError) -> Response {
    problem(StatusCode::UNPROCESSABLE_ENTITY, &why.to_string())
}

async fn tasks(State(shared): Here) -> Response {
    Json(&shared.controller.running().config.tasks).into_response()
}

async fn task(State(shared): Here, Path(name): Path<String>) -> Response {
    match shared.controller.running().config.tasks.get(&name) {
        Some(task) => Json(task).into_response(),
        None => problem(StatusCode::NOT_FOUND, "there is no task of this name"),
    }
}

async fn put_task(State(shared): Here, Path(name): Path<String>, Json(task): Json<TaskRule>) -> Response {
    change(&shared, |now| {
        let mut then = now.clone();
        then.tasks.insert(name, task);
        Ok(then)
    })
    .await
}

async fn delete_task(State(shared): Here, Path(name): Path<String>) -> Response {
    if !shared.controller.running().config.tasks.contains_key(&name) {
        return problem(StatusCode::NOT_FOUND, "there is no task of this name");
    }
    change(&shared, |now| {
        let mut then = now.clone();
        then.tasks.remove(&name);
        Ok(then)
    })
    .await
}

async fn suppression(State(shared): Here) -> Response {
    Json(&shared.controller.running().config.suppression).into_response()
}

async fn suppress(State(shared): Here, Json(suppression): Json<Suppression>) -> Response {
    change(&shared, |now| Ok(Config { suppression: Some(suppression), ..now.clone() })).await
}

async fn unsuppress(State(shared): Here) -> Response {
    change(&shared, |now| Ok(Config { suppression: None, ..now.clone() })).await
}

async fn joins(State(shared): Here) -> Response {
    let views: Vec<_> = held(&shared.joins).values().cloned().collect();
    Json(views).into_response()
}

async fn runs(State(shared): Here) -> Response {
    Json(shared.mesh.views(clock::now())).into_response()
}

async fn latest(State(shared): Here) -> Response {
    Json(shared.latest.views()).into_response()
}

type Words = Query<BTreeMap<String, String>>;

/// A time as nanoseconds since the epoch, or as a span before now: `-10min`.
fn instant(text: &str, now: Wall) -> Option<Wall> {
    match text.strip_prefix('-') {
        Some(span) => {
            span.parse::<crate::config::Time>().ok().map(|time| Wall(now.0.saturating_sub(time.0.0)))
        }
        None => text.parse().ok().map(Wall),
    }
}

fn period(words: &BTreeMap<String, String>) -> Result<Period, String> {
    let now = clock::wall();
    let at = |name: &str, usual: Wall| match words.get(name) {
        None => Ok(usual),
        Some(text) => instant(text, now)
            .ok_or_else(|| format!("'{name}' is nanoseconds since 1970 or a time before now, as in -10min")),
    };
    Ok(Period {
        from: at("from", Wall(now.0 - Span::from_secs(600).0))?,
        until: at("until", Wall(now.0 + Span::from_secs(60).0))?,
    })
}

fn limit(words: &BTreeMap<String, String>) -> Result<u32, String> {
    match words.get("limit").map(|text| text.parse::<u32>()) {
        None => Ok(1000),
        Some(Ok(limit)) if (1..=MOST_ITEMS).contains(&limit) => Ok(limit),
        Some(_) => Err(format!("'limit' is 1 to {MOST_ITEMS}")),
    }
}

fn unknown(words: &BTreeMap<String, String>, known: &[&str]) -> Result<(), String> {
    match words.keys().find(|word| !known.contains(&word.as_str())) {
        Some(word) => Err(format!("there is no '{word}' here; there are {}", known.join(", "))),
        None => Ok(()),
    }
}

fn delay_query(words: &BTreeMap<String, String>) -> Result<DelayQuery, String> {
    unknown(words, &["from", "until", "pair", "task", "version", "method", "resolution", "limit", "after"])?;
    let pair = words.get("pair").map(|text| {
        let pair = text.split_once(',').map(|(from, to)| (from.to_owned(), to.to_owned()));
        pair.ok_or("'pair' is two points, as in berlin,bern")
    });
    let version = words.get("version").map(|text| match text.as_str() {
        "4" => Ok(IpVersion::V4),
        "6" => Ok(IpVersion::V6),
        _ => Err("'version' is 4 or 6"),
    });
    let resolution = words.get("resolution").map(|text| text.parse::<crate::config::Time>());
    let resolution = resolution.transpose().map_err(|why| format!("'resolution': {why}"))?;
    Ok(DelayQuery {
        period: period(words)?,
        pair: pair.transpose()?,
        task: words.get("task").cloned(),
        version: version.transpose()?,
        method: words.get("method").cloned(),
        resolution: resolution.map_or(Span::ZERO, |time| time.0),
        limit: limit(words)?,
        after: words.get("after").map(Cursor::from_text),
    })
}

async fn delays(State(shared): Here, Query(words): Words) -> Response {
    let query = match delay_query(&words) {
        Ok(query) => query,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why),
    };
    let found = asked(shared, move |reader| reader.delays(&query)).await;
    match found {
        Ok(page) => {
            let items = page.items.into_iter().map(DelayView::from);
            let next = page.next.map(|cursor| cursor.as_text().to_owned());
            Json(DelayPage { items: items.collect(), next }).into_response()
        }
        Err(response) => *response,
    }
}

async fn rows(State(shared): Here, Path(kind): Path<String>, Query(words): Words) -> Response {
    let Some(kind) = Kind::named(&kind) else {
        let kinds = Kind::ALL.map(Kind::name).join(", ");
        return problem(StatusCode::NOT_FOUND, &format!("there are no rows of this kind; there are {kinds}"));
    };
    let query = unknown(&words, &["from", "until", "task", "probe", "limit", "after"]).and_then(|()| {
        Ok(RowQuery {
            period: period(&words)?,
            task: words.get("task").cloned(),
            probe: words.get("probe").cloned(),
            limit: limit(&words)?,
            after: words.get("after").map(Cursor::from_text),
            ..RowQuery::of(kind)
        })
    });
    let query = match query {
        Ok(query) => query,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why),
    };
    match asked(shared, move |reader| reader.rows(&query)).await {
        Ok(page) => {
            let next = page.next.map(|cursor| cursor.as_text().to_owned());
            let items = page.items.into_iter().map(|StoredRow { probe, task, period, row, lost }| RowView {
                probe,
                task,
                period,
                row,
                lost,
            });
            Json(RowPage { items: items.collect(), next }).into_response()
        }
        Err(response) => *response,
    }
}

/// The store is read on a thread that may wait for a disk.
async fn asked<T: Send + 'static>(
    shared: Arc<Shared>,
    ask: impl FnOnce(&dyn netaware_store::fleet::FleetReader) -> Result<T, netaware_store::fleet::FleetError>
    + Send
    + 'static,
) -> Result<T, Box<Response>> {
    let failed = |why: String| Box::new(problem(StatusCode::SERVICE_UNAVAILABLE, &why));
    let work = tokio::task::spawn_blocking(move || ask(held(&shared.reader).as_ref()));
    work.await.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))
}

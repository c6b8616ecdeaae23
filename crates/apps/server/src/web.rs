//! Web browsers: the page, what it asks, and the same measurements over what a browser can do.
//!
//! ```text
//!   GET /, /app.js …          the page, embedded in the binary
//!   GET /api/v1/about         who this is and which addresses it has
//!   /api/v1/results           results, where the owner keeps them
//!   WebSocket /control        control messages, one in a text frame (docs/protocol.md)
//!   WebSocket /echo           a connection of a `tcp_echo` test
//!   WebSocket /data/up        a stream of a `tcp` test whose data the browser sends
//!   GET /data/down            one whose data it receives: the body of the answer
//! ```
//!
//! What is bulk data leaves HTTP behind once the connection stands: its socket goes to the very loops that serve other probers. All else
//! is a library's. Who may ask is decided by [`origin`]: a page of somebody else's cannot use a browser to reach a responder behind
//! its firewall.

mod about;
mod assets;
mod control;
mod data;
mod echo;
mod head;
mod origin;
mod results;
mod rewind;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;

use crate::census::Place;
use crate::context::Context;
pub(crate) use echo::Consent;
use head::Head;
use origin::Origin;
pub(crate) use results::Shelf;
pub use results::{KeepError, Listed, Results};
use rewind::Rewind;

/// Everything that is known of a request's connection.
#[derive(Clone)]
struct Connection {
    context: Arc<Context>,
    local: SocketAddr,
    peer: SocketAddr,
    /// Among the strangers, until a session takes it.
    place: Arc<Mutex<Option<Place>>>,
}

/// Serves a connection of which `read` has been read and is HTTP, to its end or to where a test takes it over.
pub(crate) async fn serve(
    context: Arc<Context>,
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    read: Vec<u8>,
) {
    let Ok(local) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    if let Some(head) = Head::parse(&read)
        && data::is_for(&head)
    {
        return data::hand_over(&context, stream, local, peer, &head).await;
    }
    let place = Arc::new(Mutex::new(Some(place)));
    let router = router(Connection { context, local, peer, place });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(64 << 10);
    let service = TowerToHyperService::new(router);
    // However it ends, nobody is left to be told.
    let _ = server.serve_connection(TokioIo::new(Rewind::new(read, stream)), service).with_upgrades().await;
}

fn router(connection: Connection) -> Router {
    Router::new()
        .route("/api/v1/about", get(about::about))
        .route("/api/v1/results", get(results::list).post(results::keep))
        .route("/api/v1/results/{id}", get(results::read))
        .route("/control", get(control::open))
        .route("/echo", get(echo::open))
        .fallback(assets::serve)
        .layer(axum::extract::DefaultBodyLimit::max(results::LONGEST_RECORD))
        .layer(middleware::from_fn_with_state(connection.clone(), guard))
        .layer(middleware::map_response(hardened))
        .with_state(connection)
}

async fn guard(
    axum::extract::State(connection): axum::extract::State<Connection>,
    request: Request,
    next: Next,
) -> Response {
    match whose(request.headers(), connection.local) {
        Err(refusal) => {
            connection.context.warn(connection.peer, "a web page of somebody else's");
            problem(StatusCode::FORBIDDEN, &refusal.to_string())
        }
        Ok(origin) => {
            let mut response = next.run(request).await;
            if let Some(other) = origin.other() {
                let headers = response.headers_mut();
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, other.clone());
                headers.insert(header::VARY, HeaderValue::from_static("Origin"));
            }
            response
        }
    }
}

fn whose(headers: &HeaderMap, local: SocketAddr) -> Result<Origin, origin::Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    Origin::judge(text(header::HOST), text(header::ORIGIN), local)
}

/// Nothing is loaded from elsewhere, nothing inline is run; the page may reach this host by each of its addresses.
async fn hardened(mut response: Response) -> Response {
    let rows = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
             manifest-src 'self'; connect-src 'self' http: https: ws: wss:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in rows {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An error as the API tells it: `{"error": "…"}`.
fn problem(status: StatusCode, why: &str) -> Response {
    let body = serde_json::json!({ "error": why }).to_string();
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, Body::from(body)).into_response()
}

/// From the end of an answer to the next question of the connection.
const IDLE: Duration = Duration::from_secs(10);

//! Web browsers: the page, what it asks, and the same measurements over what a browser can do.
//!
//! ```text
//!   GET /, /app.js …          the page, embedded in the binary
//!   GET /api/v1/about         who this is and which addresses it has
//!   GET /api/v1/server        what only the owner sees
//!   /api/v1/results           results, where the owner keeps them
//!   WebSocket /control        control messages, one in a text frame (docs/protocol.md)
//!   WebSocket /echo           a connection of a `tcp_echo` test
//!   WebSocket /data/up        a stream of a `tcp` test whose data the browser sends
//!   GET /data/down            one whose data it receives: the body of the answer
//! ```
//!
//! All of it with TLS where the owner has set it up; a browser that comes without is led there.
//!
//! What is bulk data leaves HTTP behind once the connection stands: its socket goes to the very
//! loops that serve other probers. All else is a library's. Who may ask is decided by [`origin`]: a
//! page of somebody else's cannot use a browser to reach a responder behind its firewall.

mod about;
mod assets;
mod control;
mod data;
mod echo;
mod head;
mod origin;
mod owner;
mod patience;
mod results;
mod rewind;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use netaware_io::tcp_info::TcpInfo;
use netaware_units::Span;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::context::Context;
use crate::link::Link;
use crate::names::Names;
use crate::opening::{part, parting_within};
use crate::pools::Stranger;
pub(crate) use echo::Consent;
use head::Head;
use origin::Origin;
pub(crate) use owner::LastLook;
use patience::Patience;
pub(crate) use results::Shelf;
pub use results::{KeepError, Listed, Results, Sender};
use rewind::Rewind;

/// Everything that is known of a request's connection.
#[derive(Clone)]
struct Connection {
    context: Arc<Context>,
    local: SocketAddr,
    peer: SocketAddr,
    /// As the system knew it when the connection began; zero where it does not tell.
    round_trip: Span,
    /// Among the strangers, until a session takes it.
    stranger: Arc<Mutex<Option<Stranger>>>,
    is_encrypted: bool,
    leave: data::Leave,
}

/// Serves a connection of which `read` has been read and is HTTP, to its end or to where a test
/// takes it over.
pub(crate) async fn serve<L: Link>(
    context: Arc<Context>,
    link: L,
    peer: SocketAddr,
    stranger: Stranger,
    read: Vec<u8>,
) {
    let Ok(local) = link.socket().local_addr() else { return };
    let _ = link.socket().set_nodelay(true);
    if let Some(head) = Head::parse(&read).map(|head| head.below(&context.names))
        && data::is_for(&head)
    {
        return data::hand_over(&context, link, local, peer, &head).await;
    }
    let stranger = Arc::new(Mutex::new(Some(stranger)));
    let (leave, mut left) = data::Leave::new();
    let is_encrypted = L::IS_ENCRYPTED;
    let round_trip = TcpInfo::round_trip(link.socket()).unwrap_or_default();
    let connection =
        Connection { context: context.clone(), local, peer, round_trip, stranger, is_encrypted, leave };
    let router = router(connection);
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(64 << 10);
    let (routes, known) = (TowerToHyperService::new(router), Arc::clone(&context));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        known.names.rebase(request.uri_mut());
        routes.call(request)
    });
    let patient = TokioIo::new(Patience::new(Rewind::new(read, link), TAKING));
    let mut serving = server.serve_connection(patient, service).with_upgrades();
    let head = tokio::select! {
        // However it ends, nobody is left to be told.
        _ = &mut serving => return,
        Ok(head) = &mut left => head,
    };
    // Nobody may send before the answer.
    if let Some(parts) = serving.into_parts()
        && parts.read_buf.is_empty()
        && let Some(link) = parts.io.into_inner().into_inner().into_inner()
    {
        data::hand_over(&context, link, local, peer, &head).await;
    }
}

/// Tells a browser that came without encryption where it is spoken.
pub(crate) async fn to_encryption(mut stream: TcpStream, read: &[u8], names: &Names) {
    let Ok(local) = stream.local_addr() else { return };
    let answer = match Head::parse(read) {
        Some(head) => elsewhere(&head, local, names),
        None => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    };
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let round_trip = TcpInfo::round_trip(&stream).unwrap_or_default();
        part(&mut stream, parting_within(round_trip)).await;
    }
}

/// People are led on; programs, which would send what they should not, are told.
fn elsewhere(head: &Head, local: SocketAddr, names: &Names) -> String {
    let host = head.header("host").unwrap_or_default();
    // A name that anybody may own is led nowhere, and what is no host cannot end a line.
    let is_led = Origin::judge(Some(host), None, local, names).is_ok()
        && matches!(&*head.method, "GET" | "HEAD")
        && head.path.starts_with('/')
        && head.header("upgrade").is_none();
    if is_led {
        return format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://{host}{}\r\nCache-Control: no-store\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n",
            head.path
        );
    }
    let body = serde_json::json!({ "error": "HTTP is spoken over TLS only here: use https" }).to_string();
    format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn router(connection: Connection) -> Router {
    Router::new()
        .route("/api/v1/about", get(about::about))
        .route("/api/v1/server", get(owner::view))
        .route("/api/v1/results", get(results::list).post(results::keep))
        .route("/api/v1/results/{id}", get(results::read))
        .route("/control", get(control::open))
        .route("/echo", get(echo::open))
        .route(data::DOWN, get(data::leave))
        .route(data::UP, get(data::leave))
        .fallback(page)
        .layer(axum::extract::DefaultBodyLimit::max(results::LONGEST_RECORD))
        .layer(middleware::from_fn_with_state(connection.clone(), guard))
        .layer(middleware::map_response(hardened))
        .with_state(connection)
}

/// A file of the page.
async fn page(
    State(connection): State<Connection>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    if connection.context.names.is_base(path) {
        return Redirect::permanent(&format!("{path}/")).into_response();
    }
    assets::serve(method, uri, headers).await
}

async fn guard(State(connection): State<Connection>, request: Request, next: Next) -> Response {
    match whose(request.headers(), connection.local, &connection.context.names) {
        Err(refusal) => {
            connection.context.warn(connection.peer, "a web page of somebody else's");
            problem(StatusCode::FORBIDDEN, &refusal.to_string())
        }
        Ok(origin) => {
            let Ok(mut response) = timeout(ASKING, next.run(request)).await else {
                return problem(StatusCode::REQUEST_TIMEOUT, "the rest of the request did not come in time");
            };
            if let Some(other) = origin.other() {
                let headers = response.headers_mut();
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, other.clone());
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
            }
            response
        }
    }
}

fn whose(headers: &HeaderMap, local: SocketAddr, names: &Names) -> Result<Origin, origin::Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    Origin::judge(text(header::HOST), text(header::ORIGIN), local, names)
}

/// Nothing is loaded from elsewhere, nothing inline is run; the page may reach this host by each of
/// its addresses.
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
/// From the head of a request to the end of its body, and to the beginning of the answer.
const ASKING: Duration = Duration::from_secs(20);
/// How long a client may take none of what it asked for.
const TAKING: Duration = Duration::from_secs(20);

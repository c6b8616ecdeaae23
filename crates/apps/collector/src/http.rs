//! HTTP: the page, the API with its description, and metrics.

mod api;
mod client;
mod metrics;
mod openapi;
mod page;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access::May;
use crate::shared::Shared;

pub use client::{Answer, Client, ClientError};
pub use openapi::OPENAPI;
#[cfg(feature = "schema")]
pub use openapi::derived_openapi;

/// Who asks; `None` where the connection does not say.
type Peer = ConnectInfo<Option<SocketAddr>>;

/// Everything that is served.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let closed = api::routes()
        .route("/metrics", axum::routing::get(metrics::metrics))
        .route_layer(middleware::from_fn_with_state(shared.clone(), guard));
    // The page itself says nothing of the fleet; what it shows it has to ask for.
    let open = page::routes().route("/api/v1/openapi.json", axum::routing::get(openapi::serve));
    open.merge(closed)
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "there is nothing here; /api/v1/openapi.json lists what there is")
        })
        .layer(axum::extract::DefaultBodyLimit::max(crate::Config::MAX))
        .layer(middleware::map_response(hardened))
        .with_state(shared)
}

/// One connection, to its end.
pub(crate) async fn serve<S>(router: Router, stream: S, peer: Option<SocketAddr>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = router.layer(middleware::from_fn(move |mut request: Request, next: Next| {
        request.extensions_mut().insert(ConnectInfo(peer));
        next.run(request)
    }));
    let service = TowerToHyperService::new(router);
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).max_buf_size(64 << 10);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // A browser that asks for nothing is not kept for ever; how it ended is of no interest.
    let _ = tokio::time::timeout(Duration::from_mins(5), connection).await;
}

async fn guard(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): Peer,
    request: Request,
    next: Next,
) -> Response {
    shared.counts.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let refusal = refusal(&shared, peer, &request);
    match refusal {
        Some(response) => *response,
        None => next.run(request).await,
    }
}

/// `None`: it may.
fn refusal(shared: &Shared, peer: Option<SocketAddr>, request: &Request) -> Option<Box<Response>> {
    let method = request.method();
    let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let may = shared.gate.may(peer, text(header::AUTHORIZATION), text(header::HOST));
    let changes = !matches!(*method, Method::GET | Method::HEAD);
    // The configuration names files of this host and who may do what.
    let is_configuration =
        request.extensions().get::<MatchedPath>().is_some_and(|path| path.as_str() == api::CONFIG);
    let wanted = if changes || is_configuration { May::Change } else { May::Look };
    if may < wanted {
        let status = if may == May::Nothing { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
        return Some(Box::new(problem(status, shared.gate.advice(may))));
    }
    // A form of somebody else's page cannot send these types.
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let plain = !kind.starts_with("application/") || kind.starts_with("application/x-www-form");
    if changes && *method != Method::DELETE && plain {
        let why = "send it as application/toml or application/json";
        return Some(Box::new(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)));
    }
    None
}

async fn hardened(mut response: Response) -> Response {
    let rows = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in rows {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An error as the API tells it: `{"error": "…"}`.
pub(crate) fn problem(status: StatusCode, why: &str) -> Response {
    let body = serde_json::json!({ "error": why }).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}

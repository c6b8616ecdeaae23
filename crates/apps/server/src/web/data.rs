//! Connections of a browser that carry bulk data: HTTP up to here, then a test's.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::response::Response;
use netaware_io::tcp_info::TcpInfo;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::Connection;
use super::head::Head;
use super::origin::Origin;
use crate::context::Context;
use crate::event::{Event, Welcome};
use crate::link::Link;
use crate::names::Names;
use crate::opening::{part, parting_within};

/// By which a request asks that its connection leave the HTTP library.
#[derive(Clone)]
pub(super) struct Leave(Arc<Mutex<Option<oneshot::Sender<Head>>>>);

impl Leave {
    pub(super) fn new() -> (Self, oneshot::Receiver<Head>) {
        let (wish, wished) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(wish)))), wished)
    }
}

/// A stream that is asked for on a connection that had other requests before: the connection is
/// taken from under the library, which has written nothing for this request yet and never will.
pub(super) async fn leave(State(connection): State<Connection>, request: Request) -> Response {
    let head = Head::of(&request);
    let wish = connection.leave.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(wish) = wish {
        let _ = wish.send(head);
    }
    std::future::pending().await
}

/// Whether it is asked for one.
pub(super) fn is_for(head: &Head) -> bool {
    head.method == "GET" && (head.path == DOWN || head.path == UP)
}

/// Gives it to the session whose token it presents, or says why not.
pub(super) async fn hand_over<L: Link>(
    context: &Arc<Context>,
    link: L,
    local: SocketAddr,
    peer: SocketAddr,
    head: &Head,
) {
    let Ok(stream) = link.detach() else { return };
    let (mut stream, refusal) = match welcome(head, local, &context.names) {
        Ok((attach, welcome)) => {
            let event = Event::Connection { welcome, attach, stream };
            let Err(Event::Connection { stream: back, .. }) = context.registry.tell(attach.token, event)
            else {
                return;
            };
            context.warn(peer, "a stream of no known session");
            (back, "404 Not Found")
        }
        Err(refusal) => (stream, refusal),
    };
    // So little into an empty buffer does not block.
    if stream.write(answer(refusal, "").as_bytes()).is_ok() {
        if let Some(encryption) = &mut stream.encryption {
            let _ = encryption.finish(&stream.socket);
        }
        if let Ok(mut socket) = TcpStream::from_std(stream.socket) {
            let round_trip = TcpInfo::round_trip(&socket).unwrap_or_default();
            part(&mut socket, parting_within(round_trip)).await;
        }
    }
}

fn welcome(
    head: &Head,
    local: SocketAddr,
    names: &Names,
) -> Result<(netaware_wire::preface::Attach, Welcome), &'static str> {
    let origin = Origin::judge(head.header("host"), head.header("origin"), local, names);
    let origin = origin.map_err(|_| "403 Forbidden")?;
    let attach = head.attach().ok_or("400 Bad Request")?;
    let allowed = origin.other().and_then(|origin| origin.to_str().ok());
    let allowed = allowed.map(|origin| format!("Access-Control-Allow-Origin: {origin}\r\nVary: Origin\r\n"));
    let refused = answer("409 Conflict", allowed.as_deref().unwrap_or_default()).into_bytes();
    if head.path == UP {
        let key = head.websocket_key().ok_or("426 Upgrade Required")?;
        let accept = derive_accept_key(key.as_bytes());
        let attached = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        return Ok((attach, Welcome::BrowserSends { attached: attached.into_bytes(), refused }));
    }
    // No length: the body ends with the connection, when the test does.
    let attached = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n",
        allowed.unwrap_or_default()
    );
    Ok((attach, Welcome::BrowserReceives { attached: attached.into_bytes(), refused }))
}

fn answer(status: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n{more}\r\n")
}

pub(super) const DOWN: &str = "/data/down";
pub(super) const UP: &str = "/data/up";

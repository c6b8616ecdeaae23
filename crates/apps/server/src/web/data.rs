//! Connections of a browser that carry bulk data: HTTP up to here, then a test's.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::head::Head;
use super::origin::Origin;
use crate::context::Context;
use crate::event::{Event, Welcome};
use crate::opening::part;

/// Whether it is asked for one.
pub(super) fn is_for(head: &Head) -> bool {
    head.method == "GET" && (head.path == DOWN || head.path == UP)
}

/// Gives it to the session whose token it presents, or says why not.
pub(super) async fn hand_over(
    context: &Arc<Context>,
    mut stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    head: &Head,
) {
    let refusal = match welcome(head, local) {
        Ok((attach, welcome)) => {
            let Ok(std) = stream.into_std() else { return };
            let event = Event::Connection { welcome, attach, stream: std };
            let Err(Event::Connection { stream: back, .. }) = context.registry.tell(attach.token, event)
            else {
                return;
            };
            context.warn(peer, "a stream of no known session");
            let Ok(back) = TcpStream::from_std(back) else { return };
            stream = back;
            "404 Not Found"
        }
        Err(refusal) => refusal,
    };
    if stream.write_all(answer(refusal, "").as_bytes()).await.is_ok() {
        part(&mut stream).await;
    }
}

fn welcome(
    head: &Head,
    local: SocketAddr,
) -> Result<(netaware_wire::preface::Attach, Welcome), &'static str> {
    let origin =
        Origin::judge(head.header("host"), head.header("origin"), local).map_err(|_| "403 Forbidden")?;
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

const DOWN: &str = "/data/down";
const UP: &str = "/data/up";

//! Request-responses of a browser: each binary message comes back behind two instants of this host's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use netaware_io::clock;
use netaware_units::Mono;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::head::attach_of;
use super::{Connection, problem};
use crate::event::Event;

/// The session agrees: what the connection counts in, and what tells of the test's end.
#[derive(Debug)]
pub(crate) struct Consent {
    pub(crate) answered: Arc<AtomicU64>,
    /// Its sender is dropped with the test.
    pub(crate) test: watch::Receiver<()>,
    /// Longest request.
    pub(crate) longest: usize,
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

pub(super) async fn open(
    State(connection): State<Connection>,
    Query(query): Query<std::collections::HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(attach) = attach_of(|name| query.get(name).map(String::as_str)) else {
        return problem(StatusCode::BAD_REQUEST, "token, test and stream are needed");
    };
    let (answer, consent) = oneshot::channel();
    let event = Event::Echo { attach, answer };
    let known = connection.context.registry.tell(attach.token, event).is_ok();
    let consent = if known { consent.await.ok().flatten() } else { None };
    let Some(consent) = consent else {
        connection.context.warn(connection.peer, "a stream of no known session");
        return problem(StatusCode::NOT_FOUND, "no test of yours waits for this");
    };
    upgrade.max_message_size(consent.longest).on_upgrade(move |socket| answer_all(socket, consent))
}

async fn answer_all(mut socket: WebSocket, mut consent: Consent) {
    let _place = consent.place.take();
    loop {
        let message = tokio::select! {
            message = socket.recv() => message,
            // Nothing is ever sent on it: it only ends.
            _ = consent.test.changed() => return,
        };
        match message {
            Some(Ok(Message::Binary(request))) => {
                let reply = reply(&request, clock::now());
                if socket.send(Message::Binary(reply)).await.is_err() {
                    return;
                }
                consent.answered.fetch_add(1, Ordering::AcqRel);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Text(_) | Message::Close(_)) | Err(_)) | None => return,
        }
    }
}

/// `received_at` is taken when the program got it: what the kernel and this thread kept it for before is in the round trip.
fn reply(request: &[u8], received_at: Mono) -> Bytes {
    let mut bytes = Vec::with_capacity(STAMPS + request.len());
    bytes.extend(received_at.0.to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend_from_slice(request);
    bytes[8..STAMPS].copy_from_slice(&clock::now().0.to_be_bytes());
    bytes.into()
}

/// Received and answered.
const STAMPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_its_request_behind_two_instants() {
        let received_at = clock::now();
        let reply = reply(b"abc", received_at);
        let at = |from: usize| u64::from_be_bytes(*reply[from..].first_chunk().unwrap());
        assert_eq!(at(0), received_at.0);
        assert!(at(8) >= at(0));
        assert_eq!(&reply[STAMPS..], b"abc");
    }
}

//! Request-responses of a browser: each binary message comes back behind two instants of this
//! host's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use netaware_io::clock;
use netaware_pool::Place;
use netaware_units::Mono;
use tokio::sync::{oneshot, watch};

use super::control::bounded;
use super::head::attach_of;
use super::{Connection, problem};
use crate::event::Event;
use crate::meter::Meter;

/// The session agrees: what the connection counts in, and what tells of the test's end.
#[derive(Debug)]
pub(crate) struct Consent {
    pub(crate) answered: Arc<AtomicU64>,
    /// Its sender is dropped with the test.
    pub(crate) test: watch::Receiver<()>,
    /// Longest request.
    pub(crate) longest: usize,
    pub(crate) place: Option<Place>,
    /// Holds the test to the owner's caps, where there are any.
    pub(crate) meter: Option<Arc<Meter>>,
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
    bounded(upgrade, consent.longest).on_upgrade(move |socket| answer_all(socket, consent))
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
                let received_at = clock::now();
                if let Some(meter) = &consent.meter {
                    let admits = tokio::select! {
                        admits = meter.admits(2 * request.len()) => admits,
                        _ = consent.test.changed() => return,
                    };
                    if !admits {
                        return;
                    }
                }
                let reply = reply(&request, received_at);
                // A client that reads nothing does not outlive its test.
                let sent = tokio::select! {
                    sent = socket.send(Message::Binary(reply)) => sent,
                    _ = consent.test.changed() => return,
                };
                if sent.is_err() {
                    return;
                }
                consent.answered.fetch_add(1, Ordering::AcqRel);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Text(_) | Message::Close(_)) | Err(_)) | None => return,
        }
    }
}

/// `received_at` is taken when the program got it: what the kernel and this thread kept it for
/// before is in the round trip.
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
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use tokio_tungstenite::tungstenite::{self, Message as Sent, WebSocket as Client};

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

    const LONGEST: usize = 64;

    /// Answers requests of `LONGEST` bytes at most, until the test's process ends.
    fn serving() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let router = Router::new().route("/echo", get(open_to_anybody));
            runtime.block_on(async {
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), router).await.unwrap();
            });
        });
        address
    }

    async fn open_to_anybody(upgrade: WebSocketUpgrade) -> Response {
        bounded(upgrade, LONGEST).on_upgrade(|socket| async {
            let (_lasting, test) = watch::channel(());
            let answered = Arc::default();
            answer_all(socket, Consent { answered, test, longest: LONGEST, place: None, meter: None }).await;
        })
    }

    fn client(address: SocketAddr) -> Client<TcpStream> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        tungstenite::client(format!("ws://{address}/echo"), stream).unwrap().0
    }

    #[test]
    fn a_request_of_the_longest_length_is_answered() {
        let mut client = client(serving());
        client.send(Sent::binary(vec![7; LONGEST])).unwrap();
        assert_eq!(client.read().unwrap().len(), STAMPS + LONGEST);
    }

    /// The heads of RFC 6455 §5.2 alone, masked, without what they promise.
    #[test]
    fn the_head_of_an_oversized_frame_ends_the_connection() {
        let length = |bytes: u64| [&[0x82, 0xff][..], &bytes.to_be_bytes()].concat();
        let heads = [
            vec![0x82, 0xfe, 0, 126],
            length(1 << 20),
            length(1 << 40),
            length(u64::MAX >> 1),
            length(u64::MAX),
        ];
        let address = serving();
        for head in heads {
            let mut client = client(address);
            let stream = client.get_mut();
            stream.write_all(&head).unwrap();
            stream.write_all(&[0; 4]).unwrap();
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest);
            let is_over =
                !matches!(&ended, Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock));
            assert!(is_over, "{head:?} is waited for");
            // At most a close frame.
            assert!(rest.is_empty() || rest[0] == 0x88, "{rest:?}");
        }
    }

    #[test]
    fn pieces_that_come_to_more_than_the_longest_request_end_the_connection() {
        let mut client = client(serving());
        let piece = |opcode: u8| [&[opcode, 0x80 + 50, 0, 0, 0, 0][..], &[0; 50]].concat();
        client.get_mut().write_all(&piece(0x02)).unwrap();
        client.get_mut().write_all(&piece(0x80)).unwrap();
        assert!(!matches!(client.read(), Ok(Sent::Binary(_))));
    }
}

//! A control session of a browser: the messages of docs/protocol.md, each in a text frame.

use std::sync::PoisonError;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use netaware_wire::frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::{Connection, problem};
use crate::control::{self, Ends};

pub(super) async fn open(State(connection): State<Connection>, upgrade: WebSocketUpgrade) -> Response {
    let stranger = connection.stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(stranger) = stranger else {
        return problem(StatusCode::CONFLICT, "this connection has opened a session already");
    };
    let Connection { context, local, peer, round_trip, is_encrypted, .. } = connection;
    bounded(upgrade, frame::MAX_FRAME).on_upgrade(async move |socket| {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let session =
            control::serve(context, theirs, Ends { local, peer, round_trip, is_encrypted }, stranger);
        tokio::join!(session, carry(socket, ours));
    })
}

/// A frame is refused by its head: what it claims to hold beyond `longest` is never waited for. And
/// who sends pings and reads no answer makes nothing grow: of pongs that find no room the library
/// keeps the last one.
pub(super) fn bounded(upgrade: WebSocketUpgrade, longest: usize) -> WebSocketUpgrade {
    let upgrade = upgrade.max_message_size(longest).max_frame_size(longest);
    upgrade.write_buffer_size(0).max_write_buffer_size(2 * longest + OVERHEAD)
}

/// Carries messages both ways until either side ends.
async fn carry(mut socket: WebSocket, pipe: DuplexStream) {
    let (mut from_session, mut to_session) = tokio::io::split(pipe);
    let mut length = PartialLength::default();
    loop {
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    if pass_in(text.as_bytes(), &mut to_session).await.is_err() {
                        return;
                    }
                }
                // The library answers pings itself; nothing of the protocol is binary.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_) | Message::Close(_)) | Err(_)) | None => return,
            },
            announced = length.read(&mut from_session) => {
                let Some(body) = pass_out(announced, &mut from_session).await else { return };
                let sent = timeout(PATIENCE, socket.send(Message::Text(body.into()))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        }
    }
}

async fn pass_in(text: &[u8], to_session: &mut WriteHalf<DuplexStream>) -> std::io::Result<()> {
    to_session.write_all(&(text.len() as u32).to_be_bytes()).await?;
    to_session.write_all(text).await
}

/// The body of the message whose length has been read.
async fn pass_out(
    announced: std::io::Result<[u8; 4]>,
    from_session: &mut ReadHalf<DuplexStream>,
) -> Option<String> {
    let length = frame::body_len(announced.ok()?).ok()?;
    let mut body = vec![0; length];
    from_session.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

/// Reads four bytes, and may be interrupted between them.
#[derive(Debug, Default)]
struct PartialLength {
    bytes: [u8; 4],
    have: usize,
}

impl PartialLength {
    async fn read(&mut self, from: &mut ReadHalf<DuplexStream>) -> std::io::Result<[u8; 4]> {
        while self.have < self.bytes.len() {
            match from.read(&mut self.bytes[self.have..]).await? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                count => self.have += count,
            }
        }
        self.have = 0;
        Ok(self.bytes)
    }
}

/// Heads of frames, the instants before an echo, and some pongs.
const OVERHEAD: usize = 4096;
/// A browser that takes no message for so long is gone.
const PATIENCE: Duration = Duration::from_secs(4);
/// Of messages that wait between the session and its browser; more wait in the session's own
/// bounded box.
const PIPE: usize = 2 * frame::MAX_FRAME;

//! The first bytes of a TCP connection: who is it, and what for?
//!
//! Everybody is a stranger until they have said so, for at most [`OPENING_PATIENCE`] in all,
//! however slowly the bytes drip; a protocol that is not ours is turned away at the first byte that
//! differs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use netaware_io::options;
use netaware_io::tcp_info::TcpInfo;
use netaware_units::Span;
use netaware_wire::control::{ErrorCode, ServerMessage};
use netaware_wire::preface::{ATTACH_LEN, Attach, PREFACE_LEN, Preface, PrefaceError, REFUSED, Role};
use netaware_wire::{PROTOCOL_VERSION, frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::context::Context;
use crate::control::{self, Ends};
use crate::event::{Event, Welcome};
use crate::pools::Stranger;
use crate::{http, web};

/// Serves a connection to its end, or to where its session takes over.
pub(crate) async fn serve(
    context: Arc<Context>,
    mut stream: TcpStream,
    peer: SocketAddr,
    stranger: Stranger,
) {
    let mut head = Vec::with_capacity(PREFACE_LEN);
    // Patience over: close without a word, whoever it was.
    if let Some(tls) = &context.tls {
        match timeout(OPENING_PATIENCE, begins_encrypted(&stream)).await {
            Ok(true) => return serve_encrypted(&context, tls, stream, peer, stranger).await,
            Ok(false) => {}
            Err(_) => return,
        }
    }
    let Ok(opening) = timeout(OPENING_PATIENCE, read_opening(&mut stream, &mut head)).await else { return };
    match opening {
        Opening::Control if !context.config.admits(peer.ip()) => {
            context.warn(peer, "address not in an allowed network");
            if context.rules.key.is_none() {
                let why = "this address is not in a network that the responder allows";
                refuse(&mut stream, ErrorCode::Network, why).await;
            }
        }
        Opening::Control => {
            if stream.write_all(&Preface::new(Role::Control).emit()).await.is_ok() {
                let Ok(local) = stream.local_addr() else { return };
                // Answers are short and somebody waits for each.
                options::prepare_control(&stream);
                let round_trip = TcpInfo::round_trip(&stream).unwrap_or_default();
                control::serve(
                    context,
                    stream,
                    Ends { local, peer, round_trip, is_encrypted: false },
                    stranger,
                )
                .await;
            }
        }
        Opening::Attach(role, attach) => hand_over(&context, stream, peer, role, attach).await,
        Opening::OtherVersion => {
            let why = format!("only version {PROTOCOL_VERSION} of the protocol is spoken here");
            refuse(&mut stream, ErrorCode::Version, &why).await;
        }
        Opening::Http if context.rules.key.is_some() && context.tls.is_none() => {}
        Opening::Http if !context.config.admits(peer.ip()) => {
            context.warn(peer, "address not in an allowed network");
        }
        Opening::Http if context.tls.is_some() => web::to_encryption(stream, &head, &context.names).await,
        Opening::Http => web::serve(context, stream, peer, stranger, head).await,
        Opening::Foreign => {}
    }
}

/// Nothing is taken: whoever comes next finds the same bytes.
async fn begins_encrypted(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == HANDSHAKE
}

/// Only browsers come with TLS. With a key they get the page and no more than that before they have
/// proven to know it.
async fn serve_encrypted(
    context: &Arc<Context>,
    tls: &TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    stranger: Stranger,
) {
    if !context.config.admits(peer.ip()) {
        return context.warn(peer, "address not in an allowed network");
    }
    let mut head = Vec::new();
    let opened = timeout(OPENING_PATIENCE, async {
        let mut stream = tls.accept(stream).await.ok()?;
        matches!(read_opening(&mut stream, &mut head).await, Opening::Http).then_some(stream)
    });
    if let Ok(Some(stream)) = opened.await {
        web::serve(Arc::clone(context), stream, peer, stranger, head).await;
    }
}

enum Opening {
    Control,
    Attach(Role, Attach),
    OtherVersion,
    Http,
    Foreign,
}

async fn read_opening<S: AsyncRead + Unpin>(stream: &mut S, head: &mut Vec<u8>) -> Opening {
    while head.len() < PREFACE_LEN {
        let mut rest = [0; PREFACE_LEN];
        let wanted = PREFACE_LEN - head.len();
        match stream.read(&mut rest[..wanted]).await {
            Ok(0) | Err(_) => return Opening::Foreign,
            Ok(read) => head.extend_from_slice(&rest[..read]),
        }
        if http::starts(head) {
            read_http_head(stream, head).await;
            return Opening::Http;
        }
        if !Preface::may_start_with(head) && !http::may_start_with(head) {
            return Opening::Foreign;
        }
    }
    let Some(bytes) = head.first_chunk() else { return Opening::Foreign };
    match Preface::parse(bytes) {
        Ok(preface) if preface.version != PROTOCOL_VERSION => Opening::OtherVersion,
        Ok(Preface { role: Role::Control, .. }) => Opening::Control,
        Ok(Preface { role, .. }) => {
            let mut attach = [0; ATTACH_LEN];
            match stream.read_exact(&mut attach).await {
                Ok(_) => Opening::Attach(role, Attach::parse(&attach)),
                Err(_) => Opening::Foreign,
            }
        }
        // Only a later version can have further roles.
        Err(PrefaceError::UnknownRole(_)) => Opening::OtherVersion,
        Err(PrefaceError::Foreign) => Opening::Foreign,
    }
}

async fn read_http_head<S: AsyncRead + Unpin>(stream: &mut S, head: &mut Vec<u8>) {
    while head.len() < MAX_HTTP_HEAD && !http::head_is_complete(head) {
        let mut part = [0; 1024];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&part[..read]),
        }
    }
}

/// Gives a data or echo connection to the session whose token it presents.
async fn hand_over(context: &Context, stream: TcpStream, peer: SocketAddr, role: Role, attach: Attach) {
    let Ok(stream) = stream.into_std() else { return };
    let event = Event::Connection { welcome: Welcome::Prober(role), attach, stream: stream.into() };
    let Err(Event::Connection { stream, .. }) = context.registry.tell(attach.token, event) else { return };
    context.warn(peer, "a stream of no known session");
    if context.rules.key.is_none()
        && let Ok(mut stream) = TcpStream::from_std(stream.socket)
    {
        let _ = stream.write_all(&[REFUSED]).await;
        let within = parting_within(TcpInfo::round_trip(&stream).unwrap_or_default());
        part(&mut stream, within).await;
    }
}

async fn refuse(stream: &mut TcpStream, code: ErrorCode, why: &str) {
    let versions = if code == ErrorCode::Version { vec![PROTOCOL_VERSION] } else { Vec::new() };
    let error = ServerMessage::Error { code, message: why.to_owned(), test: None, versions };
    let Ok(error) = frame::emit(&error) else { return };
    let mut bytes = Preface::new(Role::Control).emit().to_vec();
    bytes.extend(error);
    say_and_part(stream, &bytes).await;
}

async fn say_and_part(stream: &mut TcpStream, bytes: &[u8]) {
    let within = parting_within(TcpInfo::round_trip(&*stream).unwrap_or_default());
    if let Ok(Ok(())) = timeout(within, stream.write_all(bytes)).await {
        part(stream, within).await;
    }
}

/// Closes so that the last words arrive: closing while bytes of the other end are unread would
/// reset the connection, and a reset may overtake what was said.
pub(crate) async fn part<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, within: Duration) {
    let drained = async {
        stream.shutdown().await?;
        let mut bin = [0; 2048];
        while stream.read(&mut bin).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whatever goes wrong here, the connection is closed next.
    let _ = timeout(within, drained).await;
}

/// How long last words and the other end's goodbye may take over a path of this round trip: there
/// and back, and once more where something is lost.
pub(crate) fn parting_within(round_trip: Span) -> Duration {
    (PARTING + round_trip.or_zero() * 2).min(LONGEST_PARTING).to_std()
}

/// From the connection's start to the last byte of its opening.
const OPENING_PATIENCE: Duration = Duration::from_secs(6);
/// First byte of a TLS record that begins a connection (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
/// What is queued when a connection ends, beside the way.
const PARTING: Span = Span::from_millis(500);
/// A stranger must not hold a connection for long.
const LONGEST_PARTING: Span = Span::from_secs(4);
const MAX_HTTP_HEAD: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    /// On a path of 1.2 s a connection was closed before the other end had heard why.
    #[test]
    fn last_words_over_a_far_path_have_the_time_of_its_round_trip() {
        let within = [0, 1200, 60_000].map(|ms| parting_within(Span::from_millis(ms)));
        assert_eq!(within, [500, 2900, 4000].map(Duration::from_millis));
    }
}

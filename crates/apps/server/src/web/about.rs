//! What a page has to know before it measures.

use std::net::IpAddr;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use netaware_io::zone::ZonedIp;
use netaware_wire::control::Limits;
use serde::Serialize;

use super::Connection;
use crate::server::is_served_by;

#[derive(Serialize)]
struct About {
    software: String,
    /// Name of the host.
    host: String,
    port: u16,
    /// By which the page can reach it, over both IP versions.
    addresses: Vec<IpAddr>,
    limits: Limits,
    /// Whether this very connection is encrypted.
    secure: bool,
    /// Whether a session has to prove that it knows a key.
    key: bool,
    /// SHA-256 of the page's certificate, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    /// What may be done with results here: `none` or `write`, which is to send and to read them.
    results: &'static str,
    /// Transports of datagrams that a browser can use here.
    datagrams: [&'static str; 1],
}

pub(super) async fn about(State(connection): State<Connection>) -> Response {
    let Connection { context, local, is_encrypted, .. } = connection;
    let mut addresses = netaware_host::reachable_addresses();
    let ours = local.ip().to_canonical();
    if ours.is_loopback() {
        // Whoever came over loopback reaches nothing by it that it would not also reach by the
        // other version's.
        addresses = [IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)].to_vec();
    } else if !addresses.contains(&ours) {
        addresses.push(ours);
    }
    let listens = |address: &IpAddr| {
        context.reflectors.iter().any(|reflector| is_served_by(*address, reflector.local().ip()))
    };
    addresses.retain(listens);
    let about = About {
        software: context.rules.software.clone(),
        host: context.host(ZonedIp::of(local)).name,
        port: local.port(),
        addresses,
        limits: context.rules.limits,
        secure: is_encrypted,
        key: context.rules.key.is_some(),
        certificate: context.config.identity.as_ref().map(|identity| identity.fingerprint().to_string()),
        results: if context.shelf.is_some() { "write" } else { "none" },
        datagrams: ["webrtc"],
    };
    ([(header::CACHE_CONTROL, "no-store")], Json(about)).into_response()
}

//! Connections of a QUIC that is not ours (quinn), each of whose ends spins in seven of eight
//! connections and sets the bit at random in the others, as RFC 9000 §17.4 wants at least one in
//! sixteen to. The fixed bit of all of them is at random as well (RFC 9287).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_record::passive::RttRow;
use netaware_units::Span;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

use super::{ROUND_TRIP, VERSIONS, of_conversations};

const PORT: u16 = 7443;
/// At the same time, each from a port of its own. That fewer than two of so many spin at both ends
/// happens once in thousands of runs.
const CONNECTIONS: usize = 8;
/// Each way, so that no edge waits for something to travel with.
pub(super) const EVERY: Span = Span::from_millis(2);
const LASTING: Duration = Duration::from_millis(1500);
/// From one handshake to the next. A host that stands still meanwhile makes a handshake long, and a
/// connection whose round trips are shorter than half of it is not taken for one that spins.
const BETWEEN: Duration = Duration::from_millis(50);

/// Both ends of all connections; what each sends the other never asked for.
pub(super) fn talk(lab: &Lab, version: IpVersion) {
    let own = rcgen::generate_simple_self_signed(["b".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();

    let bound = |side, at: SocketAddr| lab.within(side, || UdpSocket::bind(at)).unwrap();
    let at = SocketAddr::from((lab.address(Side::B, version), PORT));
    let any = match version {
        IpVersion::V4 => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        IpVersion::V6 => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let far = bound(Side::B, at);
    let near: Vec<UdpSocket> = (0..CONNECTIONS).map(|_| bound(Side::A, any)).collect();
    let endpoint = |server, socket| {
        Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime)).unwrap()
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let answering = endpoint(Some(server), far);
        let accepting = tokio::spawn(async move {
            while let Some(incoming) = answering.accept().await {
                tokio::spawn(async move { chatter(&incoming.await.unwrap()).await });
            }
        });
        let asking: Vec<_> = near
            .into_iter()
            .zip(0..)
            .map(|(socket, turn)| {
                let (endpoint, client) = (endpoint(None, socket), client.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(BETWEEN * turn).await;
                    let connection = endpoint.connect_with(client, at, "b").unwrap().await.unwrap();
                    let _ = tokio::time::timeout(LASTING, chatter(&connection)).await;
                    connection.close(0_u32.into(), b"");
                    endpoint.wait_idle().await;
                })
            })
            .collect();
        for one in asking {
            one.await.unwrap();
        }
        accepting.abort();
    });
}

/// A datagram each [`EVERY`], until the connection ends.
async fn chatter(connection: &quinn::Connection) {
    let mut tick = tokio::time::interval(EVERY.to_std());
    while connection.send_datagram(vec![7; 100].into()).is_ok() {
        tick.tick().await;
    }
}

/// Round trips by the spin bit over both versions: that several connections spin is asserted.
/// Returns those that are shorter than the path by more than `short`, or exceed it by more than
/// `mean` on average.
pub(super) fn far(rows: &[RttRow], short: Span, mean: Span) -> Vec<String> {
    let mut far = Vec::new();
    for version in VERSIONS {
        let mut spinning = Vec::new();
        for row in rows.iter().filter(|row| row.method == "spin_bit") {
            let (Some(to), Some(port)) = (row.key.destination, row.key.destination_port) else {
                continue;
            };
            if to.is_ipv6() != (version == IpVersion::V6) {
                continue;
            }
            let average = Span((row.delay.sum_ns / i128::from(row.delay.count.max(1))) as i64);
            let text = format!(
                "{} to port {port}: {} edges, least {}, mean {average}",
                version.name(),
                row.delay.count,
                row.delay.min
            );
            println!("{text}");
            // An end that loses its core between setting the bit and sending it makes one round
            // shorter than the path.
            let is_short = row.delay.min < ROUND_TRIP - short;
            far.extend((is_short || average > ROUND_TRIP + mean).then_some(text));
            if port == PORT {
                spinning.push(row.key.source_port);
            }
        }
        spinning.sort_unstable();
        spinning.dedup();
        assert!(spinning.len() >= 2, "of {CONNECTIONS} connections {spinning:?} spin: {rows:#?}");
    }
    far
}

#[test]
fn connections_of_real_quic_are_seen_to_spin() {
    if !permitted() {
        return;
    }
    let (rows, _) = of_conversations(talk);
    // The suite `accuracy` judges how close they are to the round trip of the path: that depends on
    // the host.
    let far = far(&rows, Span::from_secs(1), Span::from_secs(1));
    assert!(far.is_empty(), "{far:?}");
}

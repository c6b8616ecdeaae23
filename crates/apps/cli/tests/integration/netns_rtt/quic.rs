//! Connections of a QUIC that is not ours (quinn), each of whose ends spins in seven of eight connections and sets the bit at random in the
//! others, as RFC 9000 §17.4 wants at least one in sixteen to. The fixed bit of all of them is at random as well (RFC 9287).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use netaware_lab::{Lab, Side};
use netaware_record::IpVersion;
use netaware_units::Span;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

use super::{ROUND_TRIP, VERSIONS, of_conversations};

const PORT: u16 = 7443;
/// At the same time, each from a port of its own. That fewer than two of so many spin at both ends happens once in thousands of runs.
const CONNECTIONS: usize = 8;
/// Each way, so that no edge waits for something to travel with.
const EVERY: Duration = Duration::from_millis(2);
const LASTING: Duration = Duration::from_secs(3);

/// Both ends of all connections; what each sends the other never asked for.
fn talk(lab: &Lab, version: IpVersion) {
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
            .map(|socket| {
                let (endpoint, client) = (endpoint(None, socket), client.clone());
                tokio::spawn(async move {
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
    let mut tick = tokio::time::interval(EVERY);
    while connection.send_datagram(vec![7; 100].into()).is_ok() {
        tick.tick().await;
    }
}

#[test]
fn the_spin_bit_of_real_quic_is_the_paths_round_trip() {
    of_conversations(talk, |rows| {
        for version in VERSIONS {
            let mut spinning = Vec::new();
            for row in rows.iter().filter(|row| row.method == "spin_bit") {
                let (Some(to), Some(port)) = (row.key.destination, row.key.destination_port) else {
                    continue;
                };
                if to.is_ipv6() != (version == IpVersion::V6) {
                    continue;
                }
                let mean = Span((row.delay.sum_ns / i128::from(row.delay.count.max(1))) as i64);
                println!(
                    "{} to port {port}: {} edges, least {}, mean {mean}",
                    version.name(),
                    row.delay.count,
                    row.delay.min
                );
                // An edge turns round at both ends, and waits at each for the next datagram. An end that loses its core between setting the
                // bit and sending it makes one round shorter than the path.
                let (least, most) =
                    (ROUND_TRIP - Span::from_millis(1), ROUND_TRIP + Span(EVERY.as_nanos() as i64) * 2);
                if row.delay.min < least || mean > most {
                    return Err(format!(
                        "{} to port {port}: least {}, mean {mean}",
                        version.name(),
                        row.delay.min
                    ));
                }
                if port == PORT {
                    spinning.push(row.key.source_port);
                }
            }
            spinning.sort_unstable();
            spinning.dedup();
            if spinning.len() < 2 {
                return Err(format!("of {CONNECTIONS} connections {spinning:?} spin: {rows:#?}"));
            }
        }
        Ok(())
    });
}

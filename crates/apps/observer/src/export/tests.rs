use std::net::{SocketAddr, TcpListener};

use netaware_ipfix::{Listener, Options, Origin, Over, Sink};
use netaware_record::passive::{
    CaptureHealth, ClockState, DigestRow, FlowKey, InterfaceCapture, Period, TaskRow, VolumeRow,
};
use netaware_units::{ByteCount, Span, Wall};
use netaware_wire::ipfix::Found;

use super::*;

const NOW: Wall = Wall(1_795_440_000_000_000_000);

#[derive(Default)]
struct Heard {
    flows: Vec<u64>,
    packets: Vec<(u64, u64)>,
    /// By selection, the last word.
    statistics: BTreeMap<u64, (u64, u64)>,
}

fn listen(over: Over) -> (Listener, Arc<Mutex<Heard>>, Exporter) {
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |_: &Origin, found| {
        let mut into = held(&into);
        match found {
            Found::Flow(flow) => into.flows.push(flow.row.packets),
            Found::Packet { selection, sighting } => into.packets.push((selection, sighting.digest)),
            Found::Statistics { selection, observed, selected } => {
                into.statistics.insert(selection, (observed, selected));
            }
            _ => {}
        }
    });
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let options = match over {
        Over::Udp => Options { udp: Some(any), ..Options::default() },
        _ => Options { tcp: Some(any), ..Options::default() },
    };
    let listener = Listener::open(&options, &sink).unwrap();
    let target = format!("{over}://{}", listener.address(over).unwrap());
    (listener, heard, Exporter::new(target.parse().unwrap(), None, 1))
}

fn row(task: &str, row: Row) -> TaskRow {
    TaskRow::new(task, Period { from: NOW, until: NOW }, row)
}

fn report(packets: u64) -> ProbeReport {
    let volume = VolumeRow {
        key: FlowKey { protocol: Some(17), ..FlowKey::default() },
        packets,
        bytes: ByteCount(packets * 100),
        first_at: NOW,
        last_at: NOW,
        packets_error: 0,
        rest: false,
    };
    let digests = DigestRow { observed: 10, selected: 3, ..DigestRow::default() };
    ProbeReport {
        probe: "here".into(),
        sequence: 0,
        period: Period { from: NOW, until: NOW },
        captures: vec![InterfaceCapture { interface: "eth0".into(), health: CaptureHealth::default() }],
        clock: ClockState::default(),
        rows: vec![row("volume", Row::Volume(volume)), row("digest", Row::Digests(digests))],
        rows_cut: BTreeMap::new(),
        exchanges: Vec::new(),
    }
}

fn seen(digests: std::ops::Range<u64>) -> Vec<PacketSighting> {
    digests.map(|digest| PacketSighting { digest, at: NOW, length: 100, ttl: 64, version: 4 }).collect()
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let until = clock::now() + Span::from_secs(10);
    while !done() {
        assert!(clock::now() < until, "{what}");
        clock::sleep(Span::from_millis(5));
    }
}

#[test]
fn flows_and_packet_reports_come_with_what_chose_them() {
    for over in [Over::Tcp, Over::Udp] {
        let (_listener, heard, exporter) = listen(over);
        let mut export = Export::new(vec![("there".into(), exporter)], WhenSlow::Wait).unwrap();
        for period in 0..3 {
            export.sightings("digest", "eth0", &seen(period * 3..period * 3 + 3));
            export.report(report(period + 1));
        }
        let exported = export.finish();
        assert_eq!((exported[0].lost(), exported[0].counts.rows_skipped), (0, 0), "{exported:?}");
        wait("everything", || {
            let heard = held(&heard);
            heard.flows.len() == 3 && heard.packets.len() == 9 && heard.statistics.get(&1) == Some(&(30, 9))
        });
        let heard = held(&heard);
        assert_eq!(heard.flows, [1, 2, 3]);
        assert!(heard.packets.iter().map(|(selection, _)| *selection).all(|selection| selection == 1));
    }
}

#[test]
fn one_who_does_not_listen_takes_nothing_from_the_others_and_is_counted() {
    let (_listener, heard, exporter) = listen(Over::Tcp);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = Exporter::new(format!("tcp://{closed}").parse().unwrap(), None, 1);
    let both = vec![("dead".into(), dead), ("there".into(), exporter)];
    let mut export = Export::new(both, WhenSlow::Lose).unwrap();
    for packets in 1..=5 {
        export.report(report(packets));
    }
    let exported = export.finish();
    assert_eq!(exported.iter().map(Exported::lost).collect::<Vec<_>>(), [5, 0]);
    wait("five flows", || held(&heard).flows.len() == 5);
}

#[test]
fn what_a_collector_that_takes_nothing_has_no_room_for_is_lost_to_it_alone_and_counted() {
    // Connections wait in the kernel, nobody reads them.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("tcp://{}", deaf.local_addr().unwrap());
    let exporter = Exporter::new(target.parse().unwrap(), None, 1);
    let mut export = Export::new(vec![("deaf".into(), exporter)], WhenSlow::Lose).unwrap();
    let portion = seen(0..8192);
    // 40 MB: more than its socket buffers and the queue hold together.
    for _ in 0..200 {
        export.sightings("digest", "eth0", &portion);
    }
    assert!(export.lines[0].crowded > 0);
    // Once it is gone nothing waits for it any longer.
    drop(deaf);
    let exported = export.finish();
    assert!(exported[0].lost() > exported[0].crowded, "{exported:?}");
}

use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc::Receiver;

use netaware_io::clock;
use netaware_ipfix::Exporter;
use netaware_record::passive::{FlowKey, Row, VolumeRow};
use netaware_units::{ByteCount, Span, Wall};

use super::*;
use crate::desk::{self, Errand};

/// Two places, and little patience.
fn open() -> (Foreign, SocketAddr, Receiver<Errand>) {
    let (counter, errands) = desk::counter();
    let entrance = Entrance::new(&Config::default(), counter);
    let usual = Options { connections: 2, first_message: Span::from_millis(200), ..Options::default() };
    let place = Place::read("tcp://127.0.0.1:0").unwrap();
    let foreign = Foreign::open(&[place], None, &entrance, &usual).unwrap();
    let at = foreign.addresses()[0].1;
    (foreign, at, errands)
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let until = clock::now() + Span::from_secs(10);
    while !done() {
        assert!(clock::now() < until, "{what}");
        clock::sleep(Span::from_millis(5));
    }
}

/// Exports three packets of one flow.
fn export(at: SocketAddr) -> Exporter {
    let mut exporter = Exporter::new(format!("tcp://{at}").parse().unwrap(), None, 7);
    let row = VolumeRow {
        key: FlowKey::default(),
        packets: 3,
        bytes: ByteCount(300),
        first_at: Wall(5),
        last_at: Wall(9),
        packets_error: 0,
        rest: false,
    };
    let sent = exporter.send(clock::now(), clock::wall(), &mut |emitter, out| emitter.volume(&row, out));
    sent.unwrap();
    exporter
}

#[test]
fn strangers_that_connect_and_are_silent_do_not_keep_exporters_out() {
    let (foreign, at, errands) = open();
    let mut silent: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(at).unwrap()).collect();
    wait("both places taken", || foreign.totals().connections == 2);
    let crowded = export(at);
    wait("a third refused", || foreign.totals().refused == 1);
    drop(crowded);
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "closed by the collector");
    }
    wait("both thrown out", || foreign.totals().silent == 2 && foreign.totals().connections == 0);
    let heard = export(at);
    wait("the flow of who has something to say", || foreign.counts().flows.load(Relaxed) == 1);
    drop(heard);
    foreign.end();
    let rows: Vec<Row> = errands
        .try_iter()
        .flat_map(|errand| match errand {
            Errand::Keep(rows) => rows,
            _ => Vec::new(),
        })
        .map(|row| row.row)
        .collect();
    assert!(matches!(&rows[..], [Row::Volume(row)] if row.packets == 3), "{rows:?}");
}

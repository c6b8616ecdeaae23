//! What any exporter may send: several messages to one session, over both kinds of transport, and
//! batches of sightings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_units::Wall;
use netaware_wire::ipfix::{Interpreter, Limits, Reader, Transport, message, sightings};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { domains: 3, templates: 20, fields: 100, ..Limits::default() };
    for transport in [Transport::Stream, Transport::Datagrams] {
        let mut reader = Reader::with_limits(transport, limits);
        let mut interpreter = Interpreter::new();
        let mut left = bytes;
        let mut now = Wall(1_795_440_000_000_000_000);
        while let Ok(Some((one, rest))) = message::first(left) {
            left = rest;
            now = Wall(now.0 + 60_000_000_000);
            let mut taken = 0;
            let _ = reader.read(now, one, &mut |record| {
                taken += record.bytes.len();
                let shown: usize = record.fields().map(|(_, value)| value.len()).sum();
                assert!(shown <= record.bytes.len());
                let _ = interpreter.interpret(record);
            });
            assert!(taken <= one.len());
            assert!(reader.templates() <= limits.templates);
        }
        // As a datagram, whatever its length says.
        let _ = reader.read(now, bytes, &mut |record| drop(interpreter.interpret(record)));
    }
    if let Ok(batch) = sightings::read(bytes) {
        let seen: usize = batch.selections.iter().map(|(_, sightings)| sightings.len()).sum();
        assert!(seen <= bytes.len());
        let parts: Vec<_> = batch.selections.iter().map(|(selection, seen)| (selection, &seen[..])).collect();
        let mut again = Vec::new();
        sightings::emit(batch.domain, Wall(1_795_440_000_000_000_000), &parts, 65_535, &mut again);
        assert!(sightings::read(&again).is_ok());
    }
});

//! How near round trips, queues and the narrow link are to the truth, with the emulator at its
//! best.

use super::*;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn round_trips_and_the_narrow_link_of_a_host_that_runs_nothing_are_read() {
    if !permitted() {
        return;
    }
    let (record, report) = bare("8s");
    if !is_exact(&report) {
        return;
    }
    let mut off = Vec::new();
    for version in VERSIONS {
        for protocol in [ReachProtocol::Echo, ReachProtocol::Tcp, ReachProtocol::Udp] {
            let found = by(&record, version, protocol);
            let is_near = found.rtt.is_some_and(|rtt| rtt.p50 <= Span::from_millis(21));
            off.extend((!is_near).then(|| format!("{found:#?}")));
        }
        let echo = by(&record, version, ReachProtocol::Echo);
        let rate = echo.capacity.as_ref().map(|it| it.rate.estimate / 20e6 - 1.0);
        let is_near = rate.is_some_and(|error| error.abs() <= 0.1);
        off.extend((!is_near).then(|| format!("{echo:#?}")));
        assert_eq!(echo.loss, Some(0.0), "this path loses nothing: {echo:#?}");
    }
    judge(&off, &report, LATE);
}

/// Asks for 6 s over a path on which this way queues.
fn told(path: &str, want: QueuedWay) {
    if !permitted() {
        return;
    }
    let (found, report) = timestamps(path, "6s");
    let milli = Span::from_millis(1);
    let is_right = found.queues.as_ref().is_some_and(|queues| {
        let (loaded, free) = match want {
            QueuedWay::Forward => (queues.forward, queues.reverse),
            _ => (queues.reverse, queues.forward),
        };
        let is_sized = want == QueuedWay::Neither || loaded.max >= Span::from_millis(10);
        queues.queued == want && free.p90 <= milli && is_sized
    });
    let is_right = is_right && found.answered * 10 >= found.asked * 9;
    judge(
        &(!is_right).then(|| format!("{want:?}: {found:#?}")).into_iter().collect::<Vec<_>>(),
        &report,
        LATE,
    );
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_kernels_timestamps_tell_of_no_queue_where_none_is() {
    told("[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n", QueuedWay::Neither);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_kernels_timestamps_tell_the_way_that_queues() {
    told(&busy("a"), QueuedWay::Forward);
    told(&busy("b"), QueuedWay::Reverse);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn connections_take_as_long_as_echoes() {
    if !permitted() {
        return;
    }
    let (record, report) = connections("6s");
    let mut off = Vec::new();
    for version in VERSIONS {
        let [tcp, echo] =
            [ReachProtocol::Tcp, ReachProtocol::Echo].map(|protocol| by(&record, version, protocol));
        let [connected, echoed] = [tcp, echo].map(|found| found.rtt.map(|rtt| rtt.p50));
        println!("{}: TCP {connected:?}, echo {echoed:?}, {} connections", version.name(), tcp.answered);
        let apart = connected.zip(echoed).map(|(connected, echoed)| (connected - echoed).abs());
        let is_near = apart.is_some_and(|apart| apart < Span::from_micros(500));
        off.extend((!is_near).then(|| format!("{tcp:#?}")));
    }
    judge(&off, &report, LATE);
}

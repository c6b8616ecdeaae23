//! The main figures of a record, one by one, for tables, comparisons and pictures.
//!
//! They are the metrics that `--expect` knows, those that a person looks at first; their names are
//! the same.

use netaware_record::{Direction, IpVersion, Record};

use crate::expect::{Kind, Metric};

/// One figure of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// The metric's name: "udp.loss".
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) version: IpVersion,
    /// "up", "down", "over TCP", or nothing where there is but one.
    pub(crate) way: &'static str,
    /// In the unit of `kind`: ns, bit/s, a share of 1, or a plain number.
    pub(crate) value: f64,
    /// What it speaks of was measured to its end, or until a person ended it.
    pub(crate) is_whole: bool,
}

/// A metric worth a column, with the words above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Main {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
}

const fn main(name: &'static str, title: &'static str) -> Main {
    Main { name, title }
}

const TCP: &[Main] = &[main("tcp", "rate"), main("tcp.retransmits", "resent")];
const UDP: &[Main] = &[
    main("udp", "rate"),
    main("udp.loss", "loss"),
    main("udp.jitter", "jitter"),
    main("udp.gap.p99", "gap p99"),
    main("udp.reordered", "reordered"),
];
const LATENCY: &[Main] = &[
    main("rtt.p50", "p50"),
    main("rtt.p99", "p99"),
    main("loss", "loss"),
    main("rtt.min", "min"),
    main("rtt.mean", "mean"),
    main("rtt.max", "max"),
    main("jitter", "jitter"),
];
const TEST: &[Main] = &[
    main("tcp", "TCP"),
    main("rtt.p50", "RTT p50"),
    main("loss", "loss"),
    main("rtt.p99", "RTT p99"),
    main("loaded.p99", "loaded p99"),
    main("rpm", "RPM"),
    main("udp.loss", "UDP loss"),
    main("udp.jitter", "UDP jitter"),
    main("connect", "connect"),
];

const MATRIX: &[Main] = &[
    main("matrix.tcp", "TCP"),
    main("matrix.tcp-nodelay", "NODELAY"),
    main("matrix.udp", "UDP"),
    main("matrix.udp.loss", "UDP loss"),
];

const CAPACITY: &[Main] = &[main("capacity", "capacity")];
const AVAILABLE: &[Main] = &[main("available", "available")];
const HOPS: &[Main] = &[main("hops.capacity", "slowest link"), main("hops.rtt", "min RTT")];
const REACH: &[Main] =
    &[main("reach.rtt", "RTT p50"), main("reach.loss", "loss"), main("reach.capacity", "capacity")];

const OWD: &[Main] = &[main("owd.p50", "OWD p50"), main("owd.loss", "loss"), main("owd.ipdv", "IPDV p95")];

/// The main figures of a command, the most telling first; none for one that has none.
pub(crate) fn mains(command: &str) -> &'static [Main] {
    match command {
        "tcp" => TCP,
        "udp" => UDP,
        "latency" => LATENCY,
        "test" => TEST,
        "matrix" => MATRIX,
        "capacity" => CAPACITY,
        "available" => AVAILABLE,
        "hops" => HOPS,
        "reach" => REACH,
        "owd" => OWD,
        _ => &[],
    }
}

/// The main figures that the record has, in the order of [`mains`], IPv4 first.
pub(crate) fn figures(record: &Record) -> Vec<Figure> {
    let metrics = mains(&record.command).iter().filter_map(|main| Metric::named(main.name).ok());
    let of_metric = |metric: &'static Metric| {
        record.versions.iter().flat_map(move |result| {
            let is_whole = !metric.is_broken_off(result, record);
            metric.figures(result).into_iter().map(move |it| Figure {
                name: metric.name,
                kind: metric.kind,
                version: result.version,
                way: it.of,
                value: it.value,
                is_whole,
            })
        })
    };
    metrics.flat_map(of_metric).collect()
}

/// The direction of a figure's `way`; what names none runs there and back.
pub(crate) fn direction(name: &str) -> Direction {
    [Direction::Forward, Direction::Reverse]
        .into_iter()
        .find(|direction| direction.name() == name)
        .unwrap_or(Direction::RoundTrip)
}

#[cfg(test)]
mod tests {
    use netaware_record::Outcome;

    use super::*;
    use crate::render::fixture;

    #[test]
    fn every_main_figure_is_a_metric_that_a_threshold_can_name() {
        for command in
            ["tcp", "udp", "latency", "test", "matrix", "capacity", "available", "hops", "reach", "owd"]
        {
            for main in mains(command) {
                assert!(Metric::named(main.name).is_ok(), "{}", main.name);
            }
        }
    }

    #[test]
    fn figures_are_those_of_the_record() {
        let record = fixture::udp();
        let found = figures(&record);
        let of = |name: &str, version| {
            let figure = found.iter().find(|f| f.name == name && f.version == version).unwrap();
            assert_eq!((figure.way, direction(figure.way)), ("up", Direction::Forward));
            figure.value
        };
        for result in &record.versions {
            let udp = &result.udp[0];
            let receiver = udp.receiver.as_ref().unwrap();
            let want = [
                ("udp", udp.goodput.unwrap().0 as f64),
                ("udp.loss", udp.loss.lost as f64 / udp.sent as f64),
                ("udp.jitter", receiver.jitter.unwrap().0 as f64),
                ("udp.gap.p99", receiver.gaps.unwrap().p99.0 as f64),
            ];
            for (name, value) in want {
                assert!((of(name, result.version) - value).abs() < 1e-12, "{name}");
            }
        }
    }

    #[test]
    fn a_stream_that_broke_off_has_no_whole_figure_and_no_headline() {
        let mut record = fixture::udp();
        assert!(figures(&record).iter().all(|figure| figure.is_whole));
        record.versions[0].udp[0].outcome = Outcome::Failed;
        let broken = record.versions[0].version;
        assert!(figures(&record).iter().all(|figure| figure.is_whole == (figure.version != broken)));
        let headlines = record.headlines();
        assert!(!headlines.is_empty() && headlines.iter().all(|it| it.version != broken), "{headlines:?}");
    }

    #[test]
    fn a_test_has_both_directions_and_a_dead_version_none() {
        let record = fixture::half();
        let found = figures(&record);
        assert!(found.iter().all(|f| f.version == IpVersion::V4));
        let ways: Vec<_> = found.iter().filter(|f| f.name == "tcp").map(|f| direction(f.way)).collect();
        assert_eq!(ways.len(), 2);
        assert!(ways.contains(&Direction::Forward) && ways.contains(&Direction::Reverse));
        assert!(figures(&fixture::nothing()).is_empty());
    }

    #[test]
    fn a_matrix_is_summed_up_by_its_largest_total() {
        let record = fixture::matrix();
        let found = figures(&record);
        for result in &record.versions {
            for matrix in &result.matrix {
                let name = format!("matrix.{}", matrix.protocol.word());
                let figure = found.iter().find(|f| f.name == name && f.version == result.version).unwrap();
                let largest = matrix.cells.iter().map(|cell| cell.bytes).max().unwrap();
                let of_largest = matrix.cells.iter().filter(|cell| cell.bytes == largest);
                let rates = of_largest.filter_map(|cell| Some(cell.server_throughput.as_ref()?.estimate));
                assert_eq!(figure.value.to_bits(), rates.fold(0.0, f64::max).to_bits(), "{name}");
            }
        }
    }
}

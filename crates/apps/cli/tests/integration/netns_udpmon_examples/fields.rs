//! The columns of `--format udpmon`, read as a script would. Times are in us.

fn columns(line: &str) -> Vec<&str> {
    line.split(';').map(str::trim).collect()
}

fn number<T: std::str::FromStr>(columns: &[&str], at: usize) -> T {
    columns[at].parse().unwrap_or_else(|_| panic!("column {at} of {columns:?}"))
}

pub(crate) struct LatencyLine {
    pub(crate) response: u64,
    pub(crate) request: u64,
    pub(crate) outstanding: u64,
    pub(crate) loops: u64,
    pub(crate) bad: u64,
    pub(crate) per_loop: f64,
    pub(crate) megabytes: f64,
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) timeouts: u64,
}

impl LatencyLine {
    pub(crate) fn read(line: &str) -> Self {
        let of = columns(line);
        assert_eq!(of.len(), 11, "{line}");
        Self {
            response: number(&of, 0),
            request: number(&of, 1),
            outstanding: number(&of, 2),
            loops: number(&of, 3),
            bad: number(&of, 4),
            per_loop: number(&of, 5),
            megabytes: number(&of, 6),
            mean: number(&of, 7),
            min: number(&of, 8),
            max: number(&of, 9),
            timeouts: number(&of, 10),
        }
    }
}

pub(crate) struct UdpLine {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) payload: u64,
    pub(crate) sent: u64,
    pub(crate) per_frame_sent: f64,
    pub(crate) spacing: f64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) per_frame_received: f64,
    pub(crate) rate: f64,
    pub(crate) wire_rate: f64,
    pub(crate) entries: u64,
    /// First, second, third.
    pub(crate) quartiles: [f64; 3],
}

impl UdpLine {
    pub(crate) fn read(line: &str) -> Self {
        let of = columns(line);
        assert_eq!(of.len(), 26, "{line}");
        Self {
            from: of[1].to_owned(),
            to: of[2].to_owned(),
            payload: number(&of, 3),
            sent: number(&of, 4),
            per_frame_sent: number(&of, 7),
            spacing: number(&of, 8),
            received: number(&of, 11),
            lost: number(&of, 12),
            out_of_order: number(&of, 13),
            per_frame_received: number(&of, 15),
            rate: number(&of, 16),
            wire_rate: number(&of, 17),
            entries: number(&of, 18),
            quartiles: [24, 23, 25].map(|at| number(&of, at)),
        }
    }
}

pub(crate) struct TcpLine {
    pub(crate) block: u64,
    pub(crate) blocks: u64,
    pub(crate) spacing: f64,
    /// Until the stack had all.
    pub(crate) given: f64,
    pub(crate) megabytes: f64,
    pub(crate) received: f64,
    /// Bytes and reads.
    pub(crate) streams: Vec<(u64, u64)>,
}

impl TcpLine {
    pub(crate) fn read(line: &str) -> Self {
        let of = columns(line.trim_end_matches(';'));
        let streams = of[7..].chunks(3).map(|stream| (number(stream, 1), number(stream, 2)));
        Self {
            block: number(&of, 0),
            blocks: number(&of, 1),
            spacing: number(&of, 3),
            given: number(&of, 4),
            megabytes: number(&of, 5),
            received: number(&of, 6),
            streams: streams.collect(),
        }
    }
}

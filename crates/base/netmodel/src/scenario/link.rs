//! Reads `[[hop]]`: what stands in the hop holds for both directions, `forward` and `reverse`
//! override it, and `v4` and `v6` (in the hop or in a direction) override that for one IP version.

use netaware_units::{BitRate, Span};

use super::table::{Field, Table};
use super::{
    Aggregation, Answers, Balance, Bucket, BucketKind, Change, CoDel, Distribution, Filter, Hop, Jitter,
    Link, Loss, Members, MtuAnswer, Order, Outage, Queue, QueueLimit, Reordering, Rewrite, ScenarioError,
    Switch, Wire, bounds, middlebox,
};

type Read<T> = Result<T, ScenarioError>;

/// What one table said; `None` leaves it to the table around it.
#[derive(Clone, Default)]
struct Port {
    queue: Option<Queue>,
    overhead: Option<u32>,
    bucket: Option<Bucket>,
    members: Option<Members>,
    aggregation: Option<Aggregation>,
    switches: Option<Vec<Switch>>,
    filters: Option<Vec<Filter>>,
    rewrite: Option<Rewrite>,
}

#[derive(Clone, Default)]
struct RawWire {
    rate: Option<Vec<Change<BitRate>>>,
    delay: Option<Vec<Change<Span>>>,
    mtu: Option<u32>,
    mtu_answer: Option<MtuAnswer>,
    black_hole: Option<bool>,
    outages: Option<Vec<Outage>>,
    loss: Option<Loss>,
    duplication: Option<f64>,
    reordering: Option<Reordering>,
    jitter: Option<Jitter>,
    corruption: Option<f64>,
}

/// A hop or a direction of it.
#[derive(Clone, Default)]
struct Level {
    port: Port,
    wire: RawWire,
    versions: [RawWire; 2],
}

impl Port {
    fn over(self, under: &Self) -> Self {
        Self {
            queue: self.queue.or(under.queue),
            overhead: self.overhead.or(under.overhead),
            bucket: self.bucket.or(under.bucket),
            members: self.members.or(under.members),
            aggregation: self.aggregation.or(under.aggregation),
            switches: self.switches.or_else(|| under.switches.clone()),
            filters: self.filters.or_else(|| under.filters.clone()),
            rewrite: self.rewrite.or(under.rewrite),
        }
    }
}

impl RawWire {
    fn over(self, under: &Self) -> Self {
        Self {
            rate: self.rate.or_else(|| under.rate.clone()),
            delay: self.delay.or_else(|| under.delay.clone()),
            mtu: self.mtu.or(under.mtu),
            mtu_answer: self.mtu_answer.or(under.mtu_answer),
            black_hole: self.black_hole.or(under.black_hole),
            outages: self.outages.or_else(|| under.outages.clone()),
            loss: self.loss.or(under.loss),
            duplication: self.duplication.or(under.duplication),
            reordering: self.reordering.or(under.reordering),
            jitter: self.jitter.or(under.jitter),
            corruption: self.corruption.or(under.corruption),
        }
    }
}

pub(super) fn hops(root: &mut Table<'_>) -> Read<Vec<Hop>> {
    let field = root.need("hop", "[[hop]] with a rate and a delay")?;
    field.list(1, bounds::HOPS)?.iter().map(hop).collect()
}

fn hop(field: &Field<'_>) -> Read<Hop> {
    let mut table = field.table()?;
    let both = level(&mut table)?;
    let forward = table.read("forward", |field| direction(&field))?.unwrap_or_default();
    let reverse = table.read("reverse", |field| direction(&field))?.unwrap_or_default();
    let answers = table.read("answers", |field| answers(&field))?.unwrap_or(Answers {
        silent: false,
        delay: Span::from_micros(50),
        jitter: Span::ZERO,
        rate: 0.0,
        burst: 1,
    });
    table.finish()?;
    let link = |over: Level, name: &str| finished(over, &both, name, field);
    Ok(Hop { forward: link(forward, "forward")?, reverse: link(reverse, "reverse")?, answers })
}

fn direction(field: &Field<'_>) -> Read<Level> {
    let mut table = field.table()?;
    let level = level(&mut table)?;
    table.finish()?;
    Ok(level)
}

fn finished(over: Level, under: &Level, name: &str, field: &Field<'_>) -> Read<Link> {
    let port = over.port.over(&under.port);
    let base = over.wire.over(&under.wire);
    let [over_v4, over_v6] = over.versions;
    let [v4, v6] = [over_v4.over(&under.versions[0]), over_v6.over(&under.versions[1])];
    let wires = [wire(v4, &base, name, field)?, wire(v6, &base, name, field)?];
    let nobody = Members { count: 1, balance: Balance::Flow, delay_step: Span::ZERO };
    let link = Link {
        queue: port.queue.unwrap_or(Queue { limit: QueueLimit::Packets(1000), codel: None, fair: false }),
        overhead: port.overhead.unwrap_or(0),
        bucket: port.bucket,
        members: port.members.unwrap_or(nobody),
        aggregation: port.aggregation,
        switches: port.switches.unwrap_or_default(),
        filters: port.filters.unwrap_or_default(),
        rewrite: port.rewrite,
        wires,
    };
    check(&link, name, field)?;
    Ok(link)
}

fn wire(version: RawWire, base: &RawWire, name: &str, field: &Field<'_>) -> Read<Wire> {
    let apart = version.rate.is_some();
    let raw = version.over(base);
    let problem = || field.problem(format!("has no rate for its {name} direction"), "rate = \"100Mbit/s\"");
    Ok(Wire {
        rate: raw.rate.ok_or_else(problem)?,
        apart,
        delay: raw.delay.unwrap_or_else(|| vec![Change { at: Span::ZERO, value: Span::ZERO }]),
        mtu: raw.mtu.unwrap_or(1500),
        mtu_answer: raw.mtu_answer.unwrap_or(MtuAnswer::Icmp),
        black_hole: raw.black_hole.unwrap_or(false),
        outages: raw.outages.unwrap_or_default(),
        loss: raw.loss.unwrap_or(Loss::None),
        duplication: raw.duplication.unwrap_or(0.0),
        reordering: raw.reordering,
        jitter: raw.jitter,
        corruption: raw.corruption.unwrap_or(0.0),
    })
}

/// What only the whole link can tell.
fn check(link: &Link, name: &str, field: &Field<'_>) -> Read<()> {
    let largest = u64::from(link.wires[0].mtu.max(link.wires[1].mtu) + link.overhead);
    if let Some(bucket) = link.bucket
        && bucket.burst < largest
    {
        let problem = format!(
            "has a {name} token bucket of {} bytes, which a packet of {largest} bytes (mtu and overhead) never passes",
            bucket.burst
        );
        return Err(field.problem(problem, format!("burst = {largest}")));
    }
    if link.queue.fair && link.aggregation.is_some() {
        let problem = format!("has a {name} queue that is fair besides aggregation, which takes what waits");
        return Err(field.problem(problem, "one of both"));
    }
    if let QueueLimit::Bytes(bytes) = link.queue.limit
        && bytes < largest
    {
        let problem = format!("has a {name} queue of {bytes} bytes, less than one packet of {largest} bytes");
        return Err(field.problem(problem, format!("queue = {{ bytes = {largest} }}")));
    }
    Ok(())
}

fn level(table: &mut Table<'_>) -> Read<Level> {
    let port = Port {
        queue: table.read("queue", |field| queue(&field))?,
        overhead: table.read("overhead", |field| field.bytes(0, 1000))?.map(|bytes| bytes as u32),
        bucket: table.read("bucket", |field| bucket(&field))?,
        members: table.read("members", |field| members(&field))?,
        aggregation: table.read("aggregation", |field| aggregation(&field))?,
        switches: table.read("switches", |field| switches(&field))?,
        filters: table.read("filters", |field| middlebox::filters(&field))?,
        rewrite: table.read("rewrite", |field| middlebox::rewrite(&field))?,
    };
    let wire = raw_wire(table)?;
    let v4 = table.read("v4", |field| version(&field))?.unwrap_or_default();
    let v6 = table.read("v6", |field| version(&field))?.unwrap_or_default();
    Ok(Level { port, wire, versions: [v4, v6] })
}

fn version(field: &Field<'_>) -> Read<RawWire> {
    let mut table = field.table()?;
    let wire = raw_wire(&mut table)?;
    table.finish()?;
    Ok(wire)
}

fn raw_wire(table: &mut Table<'_>) -> Read<RawWire> {
    let mtu_answers = [("icmp", MtuAnswer::Icmp), ("silent", MtuAnswer::Silent)];
    Ok(RawWire {
        rate: table.read("rate", |field| changes(&field, rate))?,
        delay: table.read("delay", |field| changes(&field, delay))?,
        mtu: table.read("mtu", |field| field.bytes(68, 65_535))?.map(|bytes| bytes as u32),
        mtu_answer: table.read("mtu_answer", |field| field.word(&mtu_answers))?,
        black_hole: table.read("black_hole", |field| field.flag())?,
        outages: table.read("outages", |field| middlebox::outages(&field))?,
        loss: table.read("loss", |field| loss(&field))?,
        duplication: table.read("duplication", |field| field.probability())?,
        reordering: table.read("reordering", |field| reordering(&field))?,
        jitter: table.read("jitter", |field| jitter(&field))?,
        corruption: table.read("corruption", |field| field.probability())?,
    })
}

fn rate(field: &Field<'_>) -> Read<BitRate> {
    field.rate(bounds::SLOWEST, bounds::FASTEST)
}

fn delay(field: &Field<'_>) -> Read<Span> {
    field.span_up_to(Span::ZERO, bounds::DELAY)
}

/// A value, or a list of values with the instants from which they hold.
fn changes<T>(field: &Field<'_>, read: impl Fn(&Field<'_>) -> Read<T>) -> Read<Vec<Change<T>>> {
    if !field.is_list() {
        return Ok(vec![Change { at: Span::ZERO, value: read(field)? }]);
    }
    let mut changes: Vec<Change<T>> = Vec::new();
    for item in field.list(1, bounds::STEPS)? {
        let mut table = item.table()?;
        let at = table.need("at", "at = \"10s\"")?.span_up_to(Span::ZERO, bounds::INSTANT)?;
        let value = read(&table.need("value", "the value from then on")?)?;
        table.finish()?;
        match changes.last() {
            None if at > Span::ZERO => {
                return Err(item.problem("leaves the time before it open", "at = \"0s\""));
            }
            Some(last) if last.at >= at => {
                return Err(item.problem("is not later than the change before it", "a list sorted by time"));
            }
            _ => changes.push(Change { at, value }),
        }
    }
    Ok(changes)
}

fn queue(field: &Field<'_>) -> Read<Queue> {
    let mut table = field.table()?;
    let bytes = table.read("bytes", |field| field.bytes(1, bounds::QUEUE_BYTES))?.map(QueueLimit::Bytes);
    let packets = table.read("packets", |field| field.integer(0..=bounds::QUEUE_PACKETS))?;
    let packets = packets.map(|packets| QueueLimit::Packets(packets.cast_unsigned()));
    let time = table.read("time", |field| delay(&field))?.map(QueueLimit::Time);
    let codel = table.read("codel", |field| codel(&field))?.flatten();
    let fair = table.read("fair", |field| field.flag())?.unwrap_or(false);
    let given: Vec<QueueLimit> = [bytes, packets, time].into_iter().flatten().collect();
    let limit = match given[..] {
        [limit] => limit,
        [] if codel.is_some() => QueueLimit::Packets(1000),
        [] => return Err(table.problem("has no limit".to_owned(), "bytes, packets or time")),
        _ => return Err(table.problem("has several limits".to_owned(), "one of bytes, packets and time")),
    };
    if codel.is_some() && matches!(limit, QueueLimit::Time(_)) {
        let right = "a limit in bytes or packets";
        return Err(table.problem("has a limit in time besides CoDel, which decides later".to_owned(), right));
    }
    if fair && (codel.is_some() || matches!(limit, QueueLimit::Time(_))) {
        let right = "a limit in bytes or packets, and no CoDel,";
        return Err(table.problem("is fair, so that no wait is known when a packet comes".to_owned(), right));
    }
    table.finish()?;
    Ok(Queue { limit, codel, fair })
}

fn codel(field: &Field<'_>) -> Read<Option<CoDel>> {
    let standard = CoDel { target: Span::from_millis(5), interval: Span::from_millis(100) };
    if !field.is_table() {
        return Ok(field.flag()?.then_some(standard));
    }
    let mut table = field.table()?;
    let least = Span::from_micros(1);
    let target = table.read("target", |field| field.span_up_to(least, bounds::DELAY))?;
    let interval = table.read("interval", |field| field.span_up_to(least, bounds::DELAY))?;
    table.finish()?;
    Ok(Some(CoDel {
        target: target.unwrap_or(standard.target),
        interval: interval.unwrap_or(standard.interval),
    }))
}

fn bucket(field: &Field<'_>) -> Read<Bucket> {
    let mut table = field.table()?;
    let rate = rate(&table.need("rate", "rate = \"10Mbit/s\"")?)?;
    let burst = table.need("burst", "burst = \"15kB\"")?.bytes(1, bounds::QUEUE_BYTES)?;
    let initial = table.read("initial", |field| field.bytes(0, burst))?.unwrap_or(burst);
    let kinds = [("shaper", BucketKind::Shaper), ("policer", BucketKind::Policer)];
    let kind = table.need("kind", "kind = \"shaper\" or \"policer\"")?.word(&kinds)?;
    table.finish()?;
    Ok(Bucket { rate, burst, initial, kind })
}

fn members(field: &Field<'_>) -> Read<Members> {
    let mut table = field.table()?;
    let count = table.need("count", "count = 2")?.integer(1..=bounds::MEMBERS)? as u16;
    let balances = [("packet", Balance::Packet), ("flow", Balance::Flow)];
    let balance = table.read("balance", |field| field.word(&balances))?.unwrap_or(Balance::Flow);
    let delay_step = table.read("delay_step", |field| delay(&field))?.unwrap_or_default();
    table.finish()?;
    Ok(Members { count, balance, delay_step })
}

fn aggregation(field: &Field<'_>) -> Read<Aggregation> {
    let mut table = field.table()?;
    let packets = table.read("packets", |field| field.integer(1..=1024))?.unwrap_or(32) as u32;
    let bytes = table.read("bytes", |field| field.bytes(1, 1 << 24))?.unwrap_or(65_535);
    let access = table.read("access", |field| delay(&field))?.unwrap_or_default();
    let contention = table.read("contention", |field| delay(&field))?.unwrap_or_default();
    table.finish()?;
    Ok(Aggregation { packets, bytes, access, contention })
}

fn switches(field: &Field<'_>) -> Read<Vec<Switch>> {
    let switch = |item: &Field<'_>| {
        let mut table = item.table()?;
        let rate = rate(&table.need("rate", "rate = \"1Gbit/s\"")?)?;
        let delay = table.read("delay", |field| delay(&field))?.unwrap_or_default();
        table.finish()?;
        Ok(Switch { rate, delay })
    };
    field.list(0, bounds::SWITCHES)?.iter().map(switch).collect()
}

fn loss(field: &Field<'_>) -> Read<Loss> {
    if !field.is_table() {
        return Ok(Loss::Bernoulli { probability: field.probability()? });
    }
    let mut table = field.table()?;
    if let Some(every) = table.read("every", |field| field.integer(1..=i64::MAX))? {
        table.finish()?;
        return Ok(Loss::Periodic { every: every.cast_unsigned() });
    }
    let to_bad = table.need("to_bad", "every = 100, or to_bad = 0.01 and to_good = 0.3")?.probability()?;
    let to_good = table.need("to_good", "to_good = 0.3")?.probability()?;
    let loss_good = table.read("loss_good", |field| field.probability())?.unwrap_or(0.0);
    let loss_bad = table.read("loss_bad", |field| field.probability())?.unwrap_or(1.0);
    table.finish()?;
    Ok(Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad })
}

fn reordering(field: &Field<'_>) -> Read<Reordering> {
    let mut table = field.table()?;
    let probability = table.need("probability", "probability = 0.01")?.probability()?;
    let by = delay(&table.need("by", "by = \"2ms\"")?)?;
    table.finish()?;
    Ok(Reordering { probability, by })
}

fn jitter(field: &Field<'_>) -> Read<Jitter> {
    let mut table = field.table()?;
    let shapes = [("uniform", 0), ("normal", 1), ("exponential", 2), ("pareto", 3)];
    let shape = table.need("distribution", "distribution = \"exponential\"")?.word(&shapes)?;
    let mean = delay(&table.need("mean", "mean = \"2ms\"")?)?;
    let distribution = match shape {
        0 => Distribution::Uniform { mean },
        1 => {
            let deviation = delay(&table.need("deviation", "deviation = \"1ms\"")?)?;
            Distribution::Normal { mean, deviation }
        }
        2 => Distribution::Exponential { mean },
        _ => Distribution::Pareto { mean, alpha: table.need("alpha", "alpha = 1.5")?.number(1.01, 100.0)? },
    };
    let max = table.read("max", |field| delay(&field))?.unwrap_or(bounds::DELAY);
    let orders = [("kept", Order::Kept), ("free", Order::Free)];
    let order = table.read("order", |field| field.word(&orders))?.unwrap_or(Order::Kept);
    let grid = table.read("grid", |field| delay(&field))?.unwrap_or_default();
    table.finish()?;
    Ok(Jitter { distribution, max, order, grid })
}

fn answers(field: &Field<'_>) -> Read<Answers> {
    let mut table = field.table()?;
    let silent = table.read("silent", |field| field.flag())?.unwrap_or(false);
    let least = Span::from_micros(1);
    let delay = table.read("delay", |field| field.span_up_to(least, bounds::DELAY))?;
    let jitter =
        table.read("jitter", |field| field.span_up_to(Span::ZERO, bounds::DELAY))?.unwrap_or_default();
    let rate = table.read("rate", |field| field.number(0.001, 1e9))?.unwrap_or(0.0);
    let burst = table.read("burst", |field| field.integer(1..=1_000_000))?.unwrap_or(1) as u32;
    table.finish()?;
    Ok(Answers { silent, delay: delay.unwrap_or(Span::from_micros(50)), jitter, rate, burst })
}

//! What every fleet store must do, whatever it is made of. Each case gets an empty store and a time
//! to put its data at.

use netaware_record::passive::{
    CapacityRow, CaptureHealth, CaptureLoss, ClockState, DelayRow, DelayStatistics, DigestRow, FlowKey,
    InterfaceCapture, MarkingRow, PathTaken, PathsRow, Period, ProbeReport, Row, RttRow, TaskRow, TrafficRow,
    VolumeRow,
};
use netaware_record::{Histogram, Interval, IpVersion};
use netaware_store::fleet::{
    Batch, Cursor, DelayQuery, Fleet, Kind, Origin, Page, RowQuery, StoredRow, Taken,
};
use netaware_units::{ByteCount, Span, Wall};

/// A claim, and how it is put to the test.
pub(crate) type Case = (&'static str, fn(&mut dyn Fleet, Wall));

pub(crate) const CASES: &[Case] = &[
    ("what comes twice is counted once", what_comes_twice_is_counted_once),
    ("delays come back as they were given", delays_come_back_as_they_were_given),
    ("a resolution adds up exactly", a_resolution_adds_up_exactly),
    ("pages hold every point once and in order", pages_hold_every_point_once_and_in_order),
    ("filters take what they say", filters_take_what_they_say),
    ("shares of two collectors add up", shares_of_two_collectors_add_up),
    ("rows of other kinds come back", rows_of_other_kinds_come_back),
    ("probes tell how they were", probes_tell_how_they_were),
    ("tasks tell what they yielded", tasks_tell_what_they_yielded),
];

/// The same for data that is old enough to be kept as sums only: its age in days, too.
pub(crate) const OLD_CASES: &[(i64, Case)] = &[
    (
        10,
        ("by the minute all kinds say what the fine said together", minutes_say_what_the_fine_said_together),
    ),
    (100, ("by the hour all kinds say what the fine said together", hours_say_what_the_fine_said_together)),
];

/// Names with everything that a language of queries could stumble over.
const ODD: [&str; 2] = ["o'brien\\", "tab\there \"quoted\" ü\n%_{x:String}"];

fn at(base: Wall, seconds: i64) -> Wall {
    Wall(base.0 + seconds * 1_000_000_000)
}

fn second(base: Wall, n: i64) -> Period {
    Period { from: at(base, n), until: at(base, n + 1) }
}

/// Numbers that look random and are the same every time (splitmix64).
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn delays(seed: u64, n: u64) -> DelayStatistics {
    let (mut next, mut all) = (noise(seed), DelayStatistics::default());
    for _ in 0..n {
        all.observe(Span((1_000_000 + next() % 3_000_000).cast_signed()));
    }
    all
}

/// A distribution of nothing comes back with the digits that all have.
fn with_digits(delays: &DelayStatistics) -> DelayStatistics {
    let mut same = delays.clone();
    same.histogram.digits = Some(3);
    same
}

/// Each field with a number of its own.
fn delay_row(from: &str, to: &str, version: Option<IpVersion>, seed: u64) -> DelayRow {
    let n = 5 + seed % 7;
    DelayRow {
        from: from.into(),
        to: to.into(),
        version,
        method: "passive".into(),
        packets: n + 21,
        matched: n,
        lost: 1,
        unobserved: 2,
        late: 3,
        duplicates: 4,
        reordered: 5,
        collisions: 6,
        given_up: 7,
        patience: Span::from_millis(500),
        delay: delays(seed, n),
        ipdv: delays(seed + 1, n - 1),
        offset: Span(-50_000_000),
        clock_bound: Some(Span(20_000 + seed.cast_signed())),
        clock_method: "clock_daemons".into(),
        below_bound: 8,
        warnings: vec!["the first point lost packets".into()],
    }
}

fn task_row(task: &str, period: Period, row: Row) -> TaskRow {
    TaskRow::new(task, period, row)
}

fn report(probe: &str, sequence: u64, period: Period, rows: Vec<TaskRow>) -> ProbeReport {
    let health =
        CaptureHealth { seen: 1000 + sequence, lost_ring: 3, lost_nic: Some(1), ..CaptureHealth::default() };
    ProbeReport {
        probe: probe.into(),
        sequence,
        period,
        captures: vec![InterfaceCapture { interface: "eth0".into(), health }],
        clock: ClockState {
            source: "chrony".into(),
            synchronised: true,
            offset: Some(Span(-7)),
            bound: Some(Span(sequence.cast_signed() * 100)),
            ..ClockState::default()
        },
        rows,
        rows_cut: std::collections::BTreeMap::new(),
        exchanges: Vec::new(),
    }
}

fn volume(port: u16, period: Period, packets: u64) -> Row {
    Row::Volume(VolumeRow {
        key: FlowKey {
            version: Some(IpVersion::V6),
            source: Some("2001:db8::1".parse().unwrap()),
            destination: Some("2001:db8::2".parse().unwrap()),
            destination_port: Some(port),
            protocol: Some(17),
            ..FlowKey::default()
        },
        packets,
        bytes: ByteCount(packets * 1200),
        first_at: period.from,
        last_at: Wall(period.until.0 - 1),
        packets_error: 0,
        rest: false,
    })
}

fn keep(store: &mut dyn Fleet, sequence: u64, rows: &[TaskRow]) -> Taken {
    let taken = store.keep(Origin { name: "collector-1", incarnation: "aa", sequence }, rows).unwrap();
    settle(store);
    taken
}

fn settle(store: &mut dyn Fleet) {
    assert!(store.flush(Span::from_secs(30)), "all reaches the store: {:?}", store.backlog());
}

fn all_delays(store: &dyn Fleet, query: &DelayQuery) -> Vec<netaware_store::fleet::DelayPoint> {
    let page = store.delays(query).unwrap();
    assert_eq!(page.next, None);
    page.items
}

fn what_comes_twice_is_counted_once(store: &mut dyn Fleet, base: Wall) {
    let rows = |n: u64| {
        let period = second(base, n.cast_signed());
        vec![
            task_row("d", period, Row::Delay(Box::new(delay_row("a", "b", Some(IpVersion::V4), n)))),
            task_row("v", period, volume(53, period, 10)),
        ]
    };
    let reports: Vec<ProbeReport> =
        (1..=3).map(|n| report("p1", n, second(base, n.cast_signed()), rows(n))).collect();
    let first: Vec<Batch<'_>> = reports[..2].iter().map(|report| Batch::report("aa", report)).collect();
    assert_eq!(store.take_all(&first).unwrap(), [Taken::New, Taken::New]);
    settle(store);
    // The answer was lost; the probe sends all that it was not thanked for, one of them even twice.
    let again = [&first[..], &[Batch::report("aa", &reports[2]), Batch::report("aa", &reports[2])]].concat();
    assert_eq!(store.take_all(&again).unwrap(), [Taken::Known, Taken::Known, Taken::New, Taken::Known]);
    settle(store);
    assert_eq!(store.highest("p1", "aa").unwrap(), 3);
    assert_eq!((store.highest("p1", "bb").unwrap(), store.highest("p2", "aa").unwrap()), (0, 0));
    assert_eq!(all_delays(store, &DelayQuery::default()).len(), 3);
    assert_eq!(store.rows(&RowQuery::of(Kind::Volume)).unwrap().items.len(), 3);
    // A probe that was set up anew counts from 1 again.
    assert_eq!(store.take("bb", &reports[0]).unwrap(), Taken::New);
    settle(store);
    assert_eq!(store.rows(&RowQuery::of(Kind::Volume)).unwrap().items.len(), 4);
    let coarse = DelayQuery { resolution: Span::from_secs(3600), ..DelayQuery::default() };
    let packets: u64 = all_delays(store, &coarse).iter().map(|point| point.row.lost).sum();
    assert_eq!(packets, 4, "the sums by the hour count nothing twice either");
}

fn delays_come_back_as_they_were_given(store: &mut dyn Fleet, base: Wall) {
    let plain = delay_row("a", "b", Some(IpVersion::V4), 3);
    let odd = DelayRow {
        clock_bound: None,
        warnings: ODD.map(str::to_owned).to_vec(),
        delay: DelayStatistics::default(),
        ipdv: DelayStatistics { sum_ns: i128::from(i64::MAX) * 3, ..delays(9, 4) },
        offset: Span(i64::MIN),
        ..delay_row(ODD[0], ODD[1], None, 4)
    };
    let rows = [
        task_row(ODD[1], second(base, 0), Row::Delay(Box::new(odd.clone()))),
        task_row("t", second(base, 1), Row::Delay(Box::new(plain.clone()))),
    ];
    keep(store, 1, &rows);
    let found = all_delays(store, &DelayQuery::default());
    let normal = |row: DelayRow| {
        let mut warnings = row.warnings.clone();
        warnings.sort_unstable();
        DelayRow { delay: with_digits(&row.delay), ipdv: with_digits(&row.ipdv), warnings, ..row }
    };
    assert_eq!(found.len(), 2);
    assert_eq!((&found[0].task[..], found[0].period, found[0].rows), (ODD[1], second(base, 0), 1));
    assert_eq!(found[0].row, normal(odd));
    assert_eq!((&found[1].task[..], found[1].period), ("t", second(base, 1)));
    assert_eq!(found[1].row, normal(plain));
}

fn a_resolution_adds_up_exactly(store: &mut dyn Fleet, base: Wall) {
    // Three minutes from somewhere within a minute.
    let start = Wall(base.0 - base.0.rem_euclid(3_600_000_000_000) + 600_000_000_000);
    let minute = |n: i64| at(start, n).0.div_euclid(60_000_000_000);
    let versions = [Some(IpVersion::V4), Some(IpVersion::V6)];
    let mut want: Vec<(i64, Option<IpVersion>, DelayRow)> = Vec::new();
    let mut rows = Vec::new();
    for n in 17..170_i64 {
        for version in versions {
            let row = delay_row("a", "b", version, n.cast_unsigned() * 2 + u64::from(version == versions[0]));
            rows.push(task_row("t", second(start, n), Row::Delay(Box::new(row.clone()))));
            match want.iter_mut().find(|(m, v, _)| *m == minute(n) && *v == version) {
                Some((_, _, sum)) => {
                    sum.packets += row.packets;
                    sum.matched += row.matched;
                    sum.lost += row.lost;
                    sum.unobserved += row.unobserved;
                    sum.below_bound += row.below_bound;
                    sum.delay.merge(&row.delay);
                    sum.ipdv.merge(&row.ipdv);
                    sum.clock_bound = sum.clock_bound.max(row.clock_bound);
                }
                None => want.push((minute(n), version, row)),
            }
        }
    }
    keep(store, 1, &rows);
    let query = DelayQuery { resolution: Span::from_secs(60), ..DelayQuery::default() };
    let found = all_delays(store, &query);
    want.sort_by_key(|(minute, version, _)| (*minute, *version != versions[0]));
    assert_eq!(found.len(), want.len());
    for (found, (minute, version, want)) in found.iter().zip(&want) {
        let row = &found.row;
        assert_eq!((found.period.from.0.div_euclid(60_000_000_000), row.version), (*minute, *version));
        assert_eq!((row.packets, row.matched, row.lost), (want.packets, want.matched, want.lost));
        assert_eq!((row.unobserved, row.below_bound), (want.unobserved, want.below_bound));
        assert_eq!((row.clock_bound, &row.clock_method), (want.clock_bound, &want.clock_method));
        assert_eq!(row.delay.histogram, want.delay.histogram);
        assert_eq!(
            (row.delay.min, row.delay.max, row.delay.sum_ns),
            (want.delay.min, want.delay.max, want.delay.sum_ns)
        );
        assert_eq!(row.delay.quantile(0.99), want.delay.quantile(0.99));
        assert_eq!(row.ipdv.histogram, want.ipdv.histogram);
    }
    let (first, last) = (&found[0], &found[found.len() - 1]);
    assert_eq!((first.period.from, last.period.until), (at(start, 17), at(start, 170)));
    let hour = DelayQuery { resolution: Span::from_secs(3600), ..DelayQuery::default() };
    let hour = all_delays(store, &hour);
    assert_eq!((hour.len(), hour[0].rows, hour[0].row.lost), (2, 153, 153));
}

fn pages_hold_every_point_once_and_in_order(store: &mut dyn Fleet, base: Wall) {
    let rows: Vec<TaskRow> = (0..60_i64)
        .map(|n| {
            let names = ["a", ODD[0], "c"];
            let row = delay_row(names[n as usize % 3], "z", Some(IpVersion::V4), n.cast_unsigned());
            task_row(
                "t",
                second(base, n / 6),
                Row::Delay(Box::new(DelayRow { method: format!("m{}", n % 2), ..row })),
            )
        })
        .collect();
    keep(store, 1, &rows);
    let whole = all_delays(store, &DelayQuery::default());
    assert_eq!(whole.len(), 60);
    assert!(whole.is_sorted_by_key(|p| (p.period.from, p.row.from.clone(), p.row.method.clone())));
    let paged = all_pages(|after| {
        let page = store.delays(&DelayQuery { limit: 7, after, ..DelayQuery::default() }).unwrap();
        assert!(page.items.len() <= 7);
        page
    });
    assert_eq!(paged, whole);
    let volumes: Vec<TaskRow> = (0..25)
        .map(|n| task_row("v", second(base, n / 5), volume(n as u16, second(base, n / 5), 1)))
        .collect();
    keep(store, 2, &volumes);
    let rows =
        all_pages(|after| store.rows(&RowQuery { limit: 4, after, ..RowQuery::of(Kind::Volume) }).unwrap());
    let port = |stored: &StoredRow| match &stored.row {
        Row::Volume(volume) => volume.key.destination_port.unwrap(),
        other => panic!("{other:?}"),
    };
    let mut ports: Vec<u16> = rows.iter().map(port).collect();
    ports.sort_unstable();
    assert_eq!(ports, (0..25).collect::<Vec<u16>>());
}

fn filters_take_what_they_say(store: &mut dyn Fleet, base: Wall) {
    let row = |from: &str, to: &str, version| Row::Delay(Box::new(delay_row(from, to, version, 1)));
    let rows = [
        task_row("t1", second(base, 0), row("a", "b", Some(IpVersion::V4))),
        task_row("t1", second(base, 1), row("b", "a", Some(IpVersion::V6))),
        task_row(ODD[0], second(base, 2), row("a", ODD[1], None)),
        task_row(
            "t1",
            second(base, 3),
            Row::Delay(Box::new(DelayRow { method: "active".into(), ..delay_row("a", "b", None, 2) })),
        ),
    ];
    keep(store, 1, &rows);
    let pair = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
    let all = DelayQuery::default;
    let period = Period { from: at(base, 1), until: at(base, 3) };
    let table = [
        (DelayQuery { pair: pair("a", "b"), ..all() }, vec![0, 3]),
        (DelayQuery { pair: pair("a", ODD[1]), ..all() }, vec![2]),
        (DelayQuery { task: Some(ODD[0].into()), ..all() }, vec![2]),
        (DelayQuery { version: Some(IpVersion::V6), ..all() }, vec![1]),
        (DelayQuery { method: Some("active".into()), ..all() }, vec![3]),
        (DelayQuery { period, ..all() }, vec![1, 2]),
        (DelayQuery { pair: pair("a", "nobody"), ..all() }, vec![]),
    ];
    for (n, (query, want)) in table.iter().enumerate() {
        let found: Vec<i64> =
            all_delays(store, query).iter().map(|p| p.period.from.since(base).0 / 1_000_000_000).collect();
        assert_eq!(found, *want, "row {n}");
    }
    assert!(store.delays(&DelayQuery { after: Some(Cursor::from_text("x")), ..all() }).is_err());
}

fn shares_of_two_collectors_add_up(store: &mut dyn Fleet, base: Wall) {
    let rows = |seed| [task_row("t", second(base, 0), Row::Delay(Box::new(delay_row("a", "b", None, seed))))];
    for (name, seed) in [("half-0", 1), ("half-1", 2)] {
        assert_eq!(
            store.keep(Origin { name, incarnation: "x", sequence: 1 }, &rows(seed)).unwrap(),
            Taken::New
        );
    }
    settle(store);
    let mut want = delays(1, 6);
    want.merge(&delays(2, 7));
    let found = all_delays(store, &DelayQuery::default());
    assert_eq!((found.len(), found[0].rows, found[0].row.matched), (1, 2, 13));
    assert_eq!(found[0].row.delay.histogram, want.histogram);
}

fn rows_of_other_kinds_come_back(store: &mut dyn Fleet, base: Wall) {
    let period = second(base, 5);
    let key = FlowKey { source: Some("192.0.2.1".parse().unwrap()), ..FlowKey::default() };
    let interval = Interval { estimate: 1e9, lo: 9e8, hi: 1.1e9, confidence: 0.95 };
    let rows = vec![
        task_row("v", period, volume(443, period, 7)),
        task_row(
            "r",
            period,
            Row::Rtt(RttRow { key: key.clone(), method: "spin_bit".into(), delay: delays(5, 9) }),
        ),
        task_row(
            "p",
            period,
            Row::Paths(PathsRow {
                paths: vec![PathTaken { points: vec!["a".into(), ODD[1].into()], packets: 8 }],
                others: 1,
            }),
        ),
        task_row("g", period, Row::Digests(DigestRow { observed: 9, selected: 3, ..DigestRow::default() })),
        task_row(
            "c",
            period,
            Row::Capacity(CapacityRow {
                key: key.clone(),
                method: "packet_pairs".into(),
                rate: interval,
                samples: 50,
                doubts: vec![ODD[1].into()],
            }),
        ),
        task_row(
            "m",
            period,
            Row::Marking(MarkingRow {
                key,
                colour: 1,
                block: 77,
                packets: 5,
                bytes: ByteCount(500),
                first_at: period.from,
                mean_at: period.from,
                marked_at: vec![period.from],
                late: 0,
            }),
        ),
    ];
    let lost = CaptureLoss { packets: 4, merged: 2, doubtful: true };
    let rows: Vec<TaskRow> = rows.into_iter().map(|row| TaskRow { lost, ..row }).collect();
    let sent = report(ODD[0], 1, period, rows.clone());
    store.take("aa", &sent).unwrap();
    settle(store);
    for row in &rows {
        let found = store.rows(&RowQuery::of(Kind::of(&row.row))).unwrap().items;
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].probe[..], &found[0].task, found[0].period), (ODD[0], &row.task, period));
        assert_eq!((&found[0].row, found[0].lost), (&row.row, lost));
    }
    let of_another = RowQuery { probe: Some("another".into()), ..RowQuery::of(Kind::Volume) };
    assert!(store.rows(&of_another).unwrap().items.is_empty());
}

fn probes_tell_how_they_were(store: &mut dyn Fleet, base: Wall) {
    for (probe, life, sequence) in
        [("p1", "aa", 4), ("p1", "aa", 5), ("p1", "aa", 8), ("p2", "xx", 1), ("p1", "bb", 1), ("p1", "bb", 2)]
    {
        let later = if life == "bb" { 20 } else { 0 };
        let report = report(probe, sequence, second(base, sequence.cast_signed() + later), Vec::new());
        store.take(life, &report).unwrap();
    }
    settle(store);
    let always = Period { from: Wall(0), until: Wall(i64::MAX) };
    let found = store.probes(&always).unwrap();
    assert_eq!(found.iter().map(|p| &p.probe[..]).collect::<Vec<_>>(), ["p1", "p2"]);
    let first = &found[0];
    assert_eq!((&first.incarnation[..], first.sequence, first.reports, first.missing), ("bb", 2, 5, 2));
    assert_eq!((first.seen, first.lost), (5 * 1000 + 4 + 5 + 8 + 1 + 2, 20));
    assert_eq!((first.period, first.clock.bound), (second(base, 22), Some(Span(200))));
    assert_eq!(first.captures, report("p1", 2, second(base, 0), Vec::new()).captures);
    let early = Period { from: at(base, 0), until: at(base, 5) };
    let found = store.probes(&early).unwrap();
    assert_eq!((found[0].reports, found[0].sequence, found[1].reports), (1, 4, 1));
}

fn tasks_tell_what_they_yielded(store: &mut dyn Fleet, base: Wall) {
    let rows = |n: i64| vec![task_row("v", second(base, n), volume(1, second(base, n), 1))];
    for n in 0..3 {
        store.take("aa", &report("p1", n + 1, second(base, n.cast_signed()), rows(n.cast_signed()))).unwrap();
    }
    let delay = task_row("d", second(base, 1), Row::Delay(Box::new(delay_row("a", "b", None, 1))));
    keep(store, 1, &[delay]);
    let always = Period { from: Wall(0), until: Wall(i64::MAX) };
    let found = store.tasks(&always).unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|t| (&t.task[..], t.kind, &t.origin[..], t.rows, t.first.since(base).0, t.last.since(base).0))
        .collect();
    let s = 1_000_000_000;
    assert_eq!(shown, [("d", Kind::Delay, "collector-1", 1, s, s), ("v", Kind::Volume, "p1", 3, 0, 2 * s)]);
}

fn minutes_say_what_the_fine_said_together(store: &mut dyn Fleet, base: Wall) {
    let start = fine_rows(store, base);
    grow_old(store, at(base, 10 * 86_400));
    sums_say_what_the_fine_said(store, start, 60);
    let marking = store.rows(&RowQuery::of(Kind::Marking)).unwrap().items;
    assert_eq!(marking.len(), 1, "what cannot be added up stays as it came");
}

fn hours_say_what_the_fine_said_together(store: &mut dyn Fleet, base: Wall) {
    let start = fine_rows(store, base);
    grow_old(store, at(base, 100 * 86_400));
    sums_say_what_the_fine_said(store, start, FINE_ROWS);
    let marking = store.rows(&RowQuery::of(Kind::Marking)).unwrap().items;
    assert!(marking.is_empty(), "and goes at its age");
}

/// Seconds of rows: five minutes at the beginning of an hour.
const FINE_ROWS: i64 = 300;

/// Rows of every kind that is added up, and one of a kind that is not; gives the hour that they
/// begin.
fn fine_rows(store: &mut dyn Fleet, base: Wall) -> Wall {
    let start = Wall(base.0 - base.0.rem_euclid(3_600_000_000_000));
    let mut rows: Vec<TaskRow> = (0..FINE_ROWS).flat_map(|n| fine(start, n)).collect();
    let period = second(start, 0);
    rows.push(task_row("m", period, marking(period)));
    keep(store, 1, &rows);
    start
}

/// Lets a store do all that is due at this time; returns how much it deleted.
pub(crate) fn grow_old(store: &mut dyn Fleet, now: Wall) -> u64 {
    let mut deleted = 0;
    for _ in 0..MAX_ROUNDS {
        let done = store.upkeep(now).unwrap();
        deleted += done.deleted;
        if !done.more {
            return deleted;
        }
    }
    panic!("there is always more to do");
}

/// More rounds of upkeep, and more pages, than any case needs.
const MAX_ROUNDS: u32 = 10_000;

/// The items of all pages, from the first to the one that names no other.
fn all_pages<T>(mut page: impl FnMut(Option<Cursor>) -> Page<T>) -> Vec<T> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..MAX_ROUNDS {
        let page = page(after);
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
    panic!("there is always another page");
}

fn fine(start: Wall, n: i64) -> Vec<TaskRow> {
    let period = second(start, n);
    let seed = n.cast_unsigned();
    let lost = CaptureLoss { packets: 1, merged: 2, doubtful: n == 7 };
    let row = |task: &str, row: Row| TaskRow { lost, ..task_row(task, period, row) };
    let rtt = RttRow {
        key: FlowKey { source: Some("192.0.2.1".parse().unwrap()), ..FlowKey::default() },
        method: "timestamps".into(),
        // One that 64 bits do not hold.
        delay: DelayStatistics { sum_ns: i128::from(i64::MAX) * 2, ..delays(seed, 5 + seed % 7) },
    };
    vec![
        row("t", Row::Delay(Box::new(delay_row("a", "b", Some(IpVersion::V4), seed)))),
        row("v", volume(53, period, 2)),
        row("v", volume(443, period, 3)),
        row("r", Row::Rtt(rtt.clone())),
        row("r", Row::Rtt(RttRow { method: "spin_bit".into(), ..rtt })),
        row("f", Row::Traffic(traffic(period, seed))),
        row("g", Row::Digests(DigestRow { observed: seed, selected: 2, unusable: 1, given_up: 3, cut: 1 })),
    ]
}

fn traffic(period: Period, seed: u64) -> TrafficRow {
    let talker = |port: u16, packets: u64| match volume(port, period, packets) {
        Row::Volume(volume) => volume,
        other => panic!("{other:?}"),
    };
    TrafficRow {
        packets: 20,
        bytes: ByteCount(24_000),
        link_bytes: ByteCount(25_000),
        sent_link_bytes: ByteCount(10_000),
        utilisation: Some((seed % 10) as f64 / 10.0),
        slices: vec![ByteCount(seed), ByteCount(0)],
        slice: Span::from_millis(500),
        sizes: Histogram { bins: vec![(64 + seed % 3, 2), (1200, 18)], overflow: 1, ..Histogram::default() },
        top: vec![talker(443, 8 + seed % 2), talker(80, 5)],
    }
}

fn marking(period: Period) -> Row {
    Row::Marking(MarkingRow {
        key: FlowKey::default(),
        colour: 1,
        block: 77,
        packets: 5,
        bytes: ByteCount(500),
        first_at: period.from,
        mean_at: period.from,
        marked_at: Vec::new(),
        late: 0,
    })
}

/// Of each kind and key one sum for each span of so many of the fine rows.
fn sums_say_what_the_fine_said(store: &dyn Fleet, start: Wall, seconds: i64) {
    let spans: Vec<std::ops::Range<i64>> =
        (0..FINE_ROWS / seconds).map(|n| n * seconds..(n + 1) * seconds).collect();
    let period =
        |span: &std::ops::Range<i64>| Period { from: at(start, span.start), until: at(start, span.end) };
    let found = all_delays(store, &DelayQuery::default());
    assert_eq!(found.len(), spans.len(), "delays");
    let n = seconds.unsigned_abs();
    for (point, span) in found.iter().zip(&spans) {
        assert_eq!((point.period, point.rows, point.row.lost), (period(span), n, n));
        same_delays(&point.row.delay, &delays_of(span));
    }
    for kind in [Kind::Volume, Kind::Rtt, Kind::Traffic, Kind::Digests] {
        let found = paged(store, kind);
        let keys = if matches!(kind, Kind::Volume | Kind::Rtt) { 2 } else { 1 };
        assert_eq!(found.len(), spans.len() * keys, "{kind:?}");
        for (n, stored) in found.iter().enumerate() {
            let span = &spans[n / keys];
            assert_eq!((&stored.probe[..], stored.period), ("collector-1", period(span)));
            says_what_the_fine_said(&stored.row, start, span);
            let n = span.end.abs_diff(span.start);
            let lost = CaptureLoss { packets: n, merged: 2 * n, doubtful: span.contains(&7) };
            assert_eq!(stored.lost, lost, "{kind:?}");
        }
    }
    let tasks = store.tasks(&Period { from: Wall(0), until: Wall(i64::MAX) }).unwrap();
    let rows = |name: &str| tasks.iter().find(|task| task.task == name).map(|task| task.rows);
    let all = spans.len() as u64;
    assert_eq!((rows("t"), rows("v"), rows("f")), (Some(all), Some(2 * all), Some(all)), "{tasks:?}");
}

/// All of a kind, two on a page.
fn paged(store: &dyn Fleet, kind: Kind) -> Vec<StoredRow> {
    all_pages(|after| store.rows(&RowQuery { limit: 2, after, ..RowQuery::of(kind) }).unwrap())
}

fn delays_of(span: &std::ops::Range<i64>) -> DelayStatistics {
    let mut sum = DelayStatistics::default();
    for n in span.clone().map(i64::cast_unsigned) {
        sum.merge(&delays(n, 5 + n % 7));
    }
    sum
}

fn same_delays(found: &DelayStatistics, want: &DelayStatistics) {
    assert_eq!((found.count, found.min, found.max), (want.count, want.min, want.max));
    assert_eq!(found.histogram, want.histogram);
    assert!((found.sum_squares / want.sum_squares - 1.0).abs() < 1e-9);
    for q in [0.5, 0.95, 0.99, 0.999] {
        assert_eq!(found.quantile(q), want.quantile(q), "{q}");
    }
}

fn says_what_the_fine_said(row: &Row, start: Wall, span: &std::ops::Range<i64>) {
    let n = span.end.abs_diff(span.start);
    let (first, last) = (at(start, span.start), Wall(at(start, span.end).0 - 1));
    match row {
        Row::Volume(volume) => {
            let each = if volume.key.destination_port == Some(53) { 2 } else { 3 };
            assert_eq!((volume.packets, volume.bytes.0, volume.rest), (each * n, each * n * 1200, false));
            assert_eq!((volume.first_at, volume.last_at), (first, last));
        }
        Row::Rtt(rtt) => {
            same_delays(&rtt.delay, &delays_of(span));
            assert_eq!(rtt.delay.sum_ns, i128::from(i64::MAX) * 2 * i128::from(n));
            assert_eq!(rtt.key.source, Some("192.0.2.1".parse().unwrap()));
        }
        Row::Traffic(traffic) => {
            assert_eq!(
                (traffic.packets, traffic.bytes.0, traffic.link_bytes.0),
                (20 * n, 24_000 * n, 25_000 * n)
            );
            assert_eq!(traffic.sent_link_bytes.0, 10_000 * n);
            assert!((traffic.utilisation.unwrap() - 0.45).abs() < 1e-9, "{:?}", traffic.utilisation);
            let slices: Vec<u64> = span.clone().flat_map(|n| [n.cast_unsigned(), 0]).collect();
            assert_eq!(traffic.slices.iter().map(|slice| slice.0).collect::<Vec<u64>>(), slices);
            assert_eq!(
                traffic.sizes.bins,
                [(64, n / 3 * 2), (65, n / 3 * 2), (66, n / 3 * 2), (1200, 18 * n)]
            );
            assert_eq!((traffic.slice, traffic.sizes.overflow), (Span::from_millis(500), n));
            let top: Vec<(u16, u64)> = traffic
                .top
                .iter()
                .map(|talker| (talker.key.destination_port.unwrap(), talker.packets))
                .collect();
            assert_eq!(top, [(443, 8 * n + n / 2), (80, 5 * n)]);
            assert_eq!((traffic.top[0].first_at, traffic.top[0].last_at), (first, last));
        }
        Row::Digests(digests) => {
            let observed = span.clone().map(i64::cast_unsigned).sum();
            assert_eq!(
                *digests,
                DigestRow { observed, selected: 2 * n, unusable: n, given_up: 3 * n, cut: n }
            );
        }
        other => panic!("{other:?}"),
    }
}

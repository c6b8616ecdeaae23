//! The fleet store in ClickHouse, a real one: what every store must do, what happens when it is
//! away, and whether the questions of the dashboards can be asked of it.

use netaware_record::passive::{ClockState, DigestRow, Period, ProbeReport, Row, TaskRow};
use netaware_store::fleet::{self, Ages, DelayQuery, FleetError, Kind, RowQuery, Settings, Taken};
use netaware_testkit::clickhouse::{ClickHouse, serve_if_told};
use netaware_units::{Span, Wall};

use super::cases;

const TEST: &str = "fleet_clickhouse::a_real_clickhouse_does_what_every_store_must";

/// One test, because one server serves them all: a second costs half a gigabyte of memory.
#[test]
fn a_real_clickhouse_does_what_every_store_must() {
    serve_if_told();
    let Some(mut server) = ClickHouse::start(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let settings = |name: &str| Settings {
        buffer: Some(folder.path().join(format!("{name}.db"))),
        ..Settings::default()
    };
    let now = server.ask("SELECT toUnixTimestamp64Nano(now64(9)) FORMAT TSV").unwrap();
    let now: i64 = now.trim().parse().unwrap();
    let whole_seconds = now - now.rem_euclid(1_000_000_000);
    let days_ago = |days: i64| Wall(whole_seconds - days * 86_400_000_000_000);
    let recent = days_ago(2);
    let of_old = cases::OLD_CASES.iter().map(|(days, case)| (case, days_ago(*days)));
    let all = cases::CASES.iter().map(|case| (case, recent)).chain(of_old);
    for (n, ((claim, case), base)) in all.enumerate() {
        eprintln!("{claim}");
        let name = format!("case_{n}");
        case(fleet::open_with(&server.place(&name), &settings(&name)).unwrap().as_mut(), base);
    }
    an_insert_that_is_sent_twice_counts_once(&server);
    what_came_while_it_was_away_is_there_afterwards(&mut server, &settings("away"), recent);
    a_new_buffer_knows_what_was_taken_before(&server, &settings("anew"), recent);
    ages_that_changed_reach_the_tables(&server, &settings("aged"), recent);
    dashboards_ask_what_can_be_answered(&server);
}

fn digests(sequence: u64, base: Wall) -> ProbeReport {
    let from = Wall(base.0 + sequence.cast_signed() * 1_000_000_000);
    let period = Period { from, until: Wall(from.0 + 1_000_000_000) };
    let row = Row::Digests(DigestRow { observed: sequence, ..DigestRow::default() });
    ProbeReport {
        probe: "p".into(),
        sequence,
        period,
        captures: Vec::new(),
        clock: ClockState::default(),
        rows: vec![TaskRow::new("d", period, row)],
        rows_cut: std::collections::BTreeMap::new(),
        exchanges: Vec::new(),
    }
}

/// Of raw rows and of the sums that views make of them.
fn an_insert_that_is_sent_twice_counts_once(server: &ClickHouse) {
    let twice = "INSERT INTO case_0.delays (at, task, lost) SETTINGS insert_deduplication_token = 'a',
                 deduplicate_blocks_in_dependent_materialized_views = 1 VALUES (now64(9), 'twice', 5)";
    for _ in 0..2 {
        server.ask(twice).unwrap();
    }
    for table in ["delays", "delays_1m", "delays_1h"] {
        let lost = server.ask(&format!("SELECT sum(lost) FROM case_0.{table} WHERE task = 'twice'")).unwrap();
        assert_eq!(lost.trim(), "5", "{table}");
    }
}

fn what_came_while_it_was_away_is_there_afterwards(server: &mut ClickHouse, settings: &Settings, base: Wall) {
    let mut store = fleet::open_with(&server.place("away"), settings).unwrap();
    assert_eq!(store.take("aa", &digests(1, base)).unwrap(), Taken::New);
    assert!(store.flush(Span::from_secs(30)), "{:?}", store.backlog());
    server.stop();
    for sequence in 2..=500 {
        assert_eq!(store.take("aa", &digests(sequence, base)).unwrap(), Taken::New);
    }
    assert!(!store.flush(Span::from_millis(300)));
    assert_eq!((store.backlog().rows, store.backlog().given_up), (2 * 499, 0));
    assert!(store.backlog().trouble.is_some());
    // The collector ends meanwhile, too.
    drop(store);
    let mut store = fleet::open_with(&server.place("away"), settings).unwrap();
    assert_eq!(store.take("aa", &digests(500, base)).unwrap(), Taken::Known);
    let reader = fleet::read(&server.place("away")).unwrap();
    assert!(matches!(reader.delays(&DelayQuery::default()), Err(FleetError::Away { .. })));
    server.restart(TEST);
    assert!(store.flush(Span::from_secs(60)), "{:?}", store.backlog());
    assert_eq!(reader.delays(&DelayQuery::default()).unwrap().items, []);
    let found = reader.rows(&RowQuery::of(Kind::Digests)).unwrap().items;
    let numbers: Vec<u64> = found
        .iter()
        .map(|stored| match &stored.row {
            Row::Digests(digests) => digests.observed,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, (1..=500).collect::<Vec<u64>>());
}

fn a_new_buffer_knows_what_was_taken_before(server: &ClickHouse, settings: &Settings, base: Wall) {
    let mut store = fleet::open_with(&server.place("away"), settings).unwrap();
    assert_eq!(store.highest("p", "aa").unwrap(), 500);
    assert_eq!(store.take("aa", &digests(499, base)).unwrap(), Taken::Known);
    assert_eq!(store.take("aa", &digests(501, base)).unwrap(), Taken::New);
}

/// Rows of two days ago: kept as they came for a week, then, when the settings say one day, by the
/// minute alone.
fn ages_that_changed_reach_the_tables(server: &ClickHouse, settings: &Settings, base: Wall) {
    let days = |n: i64| Span::from_secs(n * 86_400);
    let has_ages = |expected: [(&str, i64); 6]| {
        for (table, age) in expected {
            let of = format!("WHERE database = 'aged' AND name = '{table}'");
            let made = server.ask(&format!("SELECT create_table_query FROM system.tables {of}")).unwrap();
            assert!(made.contains(&format!("toIntervalSecond({})", age * 86_400)), "{table}: {made}");
        }
    };
    let mut store = fleet::open_with(&server.place("aged"), settings).unwrap();
    for sequence in 1..=2 {
        store.take("aa", &digests(sequence, base)).unwrap();
    }
    assert!(store.flush(Span::from_secs(30)), "{:?}", store.backlog());
    drop(store);
    let five_years = 5 * 365;
    has_ages([
        ("delays", 7),
        ("delays_1m", 90),
        ("delays_1h", five_years),
        ("rows_1m", 90),
        ("rows_1h", five_years),
        ("reports", 90),
    ]);
    let as_came = || server.ask("SELECT count() FROM aged.rows").unwrap().trim().to_owned();
    assert_eq!(as_came(), "2");

    let ages = Ages { to_minutes: days(1), to_hours: days(30), delete: days(400), delete_single: days(50) };
    let mut store = fleet::open_with(&server.place("aged"), &Settings { ages, ..settings.clone() }).unwrap();
    // The tables are told before the first row of this process.
    store.take("aa", &digests(3, base)).unwrap();
    assert!(store.flush(Span::from_secs(30)), "{:?}", store.backlog());
    has_ages([
        ("delays", 1),
        ("delays_1m", 30),
        ("delays_1h", 400),
        ("rows_1m", 30),
        ("rows_1h", 400),
        ("reports", 50),
    ]);
    // Old rows go when parts are merged, which is now.
    server.ask("OPTIMIZE TABLE aged.rows FINAL").unwrap();
    assert_eq!(as_came(), "0");
    let found = store.rows(&RowQuery::of(Kind::Digests)).unwrap().items;
    let counted = found.iter().map(|one| if let Row::Digests(row) = &one.row { row.observed } else { 0 });
    assert_eq!(counted.sum::<u64>(), 6);
    // Three seconds lie in one minute or in two.
    assert!(found.len() < 3, "{found:?}");
}

/// Each question of each dashboard, with what Grafana would put in.
fn dashboards_ask_what_can_be_answered(server: &ClickHouse) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/grafana");
    let mut asked = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let board: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut questions = Vec::new();
        collect(&board, &mut questions);
        for question in questions {
            let filled = question
                .replace("$__timeFilter(at)", "at >= now() - 604800 AND at < now()")
                .replace("$__timeInterval(at)", "toStartOfInterval(toDateTime(at), toIntervalSecond(60))")
                .replace("${database}", "case_2")
                .replace("${pair:singlequote}", "'a → b'")
                .replace("${probe:singlequote}", "'p1'");
            assert!(!filled.contains('$'), "{}: {question}", path.display());
            if let Err(answer) = server.ask(&format!("{filled} FORMAT Null")) {
                panic!("{}: {question}: {answer}", path.display());
            }
            asked += 1;
        }
    }
    assert!(asked >= 8, "{asked} questions");
}

/// The statements in a dashboard: values of `rawSql`, and of `query` where that is one.
fn collect(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if (name == "rawSql" || name == "query") && text.starts_with("SELECT") => {
                        into.push(text.to_owned());
                    }
                    _ => collect(value, into),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}

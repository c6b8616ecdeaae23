//! The fleet store on two ClickHouse servers, each with a shard: what every store must do, through
//! tables that are `Distributed`.
//!
//! ```text
//!   netaware ──► server 1: delays (Distributed) ──┬─► server 1: delays_local ─► views ─► delays_1m_local, …
//!   netaware ──► server 2: delays (Distributed) ──┴─► server 2: delays_local ─► views ─► …
//! ```
//!
//! The tables are those of `packaging/clickhouse/sharded.sql`. Only `ON CLUSTER` is left out, which
//! needs a Keeper that the library does not have: each statement is given to both servers.

use netaware_record::passive::{DelayRow, Period, Row, TaskRow};
use netaware_store::fleet::{self, DelayQuery, Settings};
use netaware_testkit::clickhouse::{ClickHouse, serve_if_told};
use netaware_testkit::program::free_port;
use netaware_units::{Span, Wall};

use super::cases;

const TEST: &str = "fleet_clickhouse_sharded::two_shards_do_what_one_server_does";

fn cluster(ports: [u16; 2]) -> String {
    let shard =
        |port: u16| format!("<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>");
    format!(
        "<clickhouse><remote_servers><fleet>{}</fleet></remote_servers></clickhouse>",
        ports.map(shard).concat()
    )
}

/// Makes the tables as the file says, once for both.
fn lay_out(servers: &[ClickHouse; 2], database: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/clickhouse/sharded.sql");
    let text = std::fs::read_to_string(path).unwrap();
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let text = text.join("\n") + "\n";
    for server in servers {
        server.ask(&format!("CREATE DATABASE {database} ENGINE = Atomic")).unwrap();
    }
    let statements = text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty());
    for statement in statements {
        let is_once = statement.starts_with("INSERT");
        for server in &servers[..if is_once { 1 } else { 2 }] {
            let statement = statement.replace(" ON CLUSTER fleet", "");
            server.ask_in(database, &statement).unwrap_or_else(|why| panic!("{why}: {statement}"));
        }
    }
}

fn count(server: &ClickHouse, database: &str, table: &str) -> u64 {
    let found = server.ask(&format!("SELECT count() FROM {database}.{table}")).unwrap();
    found.trim().parse().unwrap()
}

#[test]
fn two_shards_do_what_one_server_does() {
    serve_if_told();
    let folder = tempfile::tempdir().unwrap();
    let tcp = [free_port(), free_port()];
    let config = folder.path().join("cluster.xml");
    std::fs::write(&config, cluster(tcp)).unwrap();
    let start = |port: u16| {
        let file = format!("--config-file={}", config.display());
        ClickHouse::start_with(TEST, &[file, format!("--tcp_port={port}")])
    };
    let [Some(first), Some(second)] = tcp.map(start) else { return };
    let servers = [first, second];
    let now = servers[0].ask("SELECT toUnixTimestamp64Nano(now64(9)) FORMAT TSV").unwrap();
    let now: i64 = now.trim().parse().unwrap();
    let days_ago = |days: i64| Wall(now - now.rem_euclid(1_000_000_000) - days * 86_400_000_000_000);
    let of_old = cases::OLD_CASES.iter().map(|(days, case)| (case, days_ago(*days)));
    let all = cases::CASES.iter().map(|case| (case, days_ago(2))).chain(of_old);
    for (n, ((claim, case), base)) in all.enumerate() {
        eprintln!("{claim}");
        let name = format!("case_{n}");
        lay_out(&servers, &name);
        let buffer = Some(folder.path().join(format!("{name}.db")));
        // Collectors go to either.
        let place = servers[n % 2].place(&name);
        case(fleet::open_with(&place, &Settings { buffer, ..Settings::default() }).unwrap().as_mut(), base);
        for table in ["delays", "delays_1m", "delays_1h", "rows", "reports"] {
            let [here, there] =
                servers.each_ref().map(|server| count(server, &name, &format!("{table}_local")));
            assert_eq!(here + there, count(&servers[0], &name, table), "{table}");
            assert_eq!(count(&servers[0], &name, table), count(&servers[1], &name, table), "{table}");
        }
    }
    what_both_take_is_read_at_either(&servers, folder.path(), days_ago(2));
    an_insert_that_is_sent_twice_counts_once(&servers);
}

fn row(base: Wall, pair: u64) -> TaskRow {
    let period = Period { from: base, until: Wall(base.0 + 1_000_000_000) };
    let mut row =
        DelayRow { from: format!("p{pair}"), to: "q".into(), packets: 5, ..DelayRow::empty("passive") };
    row.delay.observe(Span::from_millis(pair.cast_signed() + 1));
    TaskRow::new("path", period, Row::Delay(Box::new(row)))
}

/// Two collectors, each with a server of its own, and many pairs of points: they are spread over
/// both shards.
fn what_both_take_is_read_at_either(servers: &[ClickHouse; 2], folder: &std::path::Path, base: Wall) {
    lay_out(servers, "shared");
    for (n, server) in servers.iter().enumerate() {
        let buffer = Some(folder.join(format!("shared_{n}.db")));
        let mut store =
            fleet::open_with(&server.place("shared"), &Settings { buffer, ..Settings::default() }).unwrap();
        let rows: Vec<TaskRow> = (0..40).map(|n| row(base, n)).collect();
        let origin = fleet::Origin { name: &format!("collector-{n}"), incarnation: "aa", sequence: 1 };
        store.keep(origin, &rows).unwrap();
        assert!(store.flush(Span::from_secs(30)), "{:?}", store.backlog());
    }
    let query = DelayQuery { resolution: Span::from_secs(3600), ..DelayQuery::default() };
    let [one, other] = servers.each_ref().map(|server| {
        let reader = fleet::read(&server.place("shared")).unwrap();
        reader.delays(&query).unwrap().items
    });
    assert_eq!(one, other);
    assert_eq!(one.len(), 40);
    assert!(one.iter().all(|point| point.rows == 2), "one of each collector");
    let parts = servers.each_ref().map(|server| count(server, "shared", "delays_local"));
    println!("rows on the shards: {parts:?}");
    assert!(parts.iter().sum::<u64>() == 80 && parts.iter().all(|part| *part >= 20), "{parts:?}");
}

/// The token goes on to the shards.
fn an_insert_that_is_sent_twice_counts_once(servers: &[ClickHouse; 2]) {
    let twice = "INSERT INTO shared.delays (at, task, lost) SETTINGS insert_deduplication_token = 'a',
                 deduplicate_blocks_in_dependent_materialized_views = 1, distributed_foreground_insert = 1
                 VALUES (now64(9), 'twice', 5)";
    // The second time by the other server.
    for server in servers {
        server.ask(twice).unwrap();
    }
    for table in ["delays", "delays_1m", "delays_1h"] {
        let lost =
            servers[0].ask(&format!("SELECT sum(lost) FROM shared.{table} WHERE task = 'twice'")).unwrap();
        assert_eq!(lost.trim(), "5", "{table}");
    }
}

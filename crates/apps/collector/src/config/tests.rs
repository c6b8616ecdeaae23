use super::*;

fn fault(text: &str) -> String {
    Config::read(text).unwrap_err().to_string()
}

const TWO: &str = "[probes.a]\nkey_file = \"a.key\"\n[probes.b]\nkey_file = \"b.key\"\n";

#[test]
fn every_mistake_is_told_with_its_place_and_what_would_be_right() {
    let rows = [
        (1, "[probes.A]\nkey_file = \"k\"", "probes.A: a probe is named by"),
        (2, "[probes.c]", "needs a key_file"),
        (3, "[groups]\nsites = [\"bern\"]", "groups.sites: there is no probe 'bern'; probes are: a, b"),
        (
            4,
            "[tasks.t]\non = [\"a\"]\nkind = \"digest\"\nshare = 2.0",
            "'share' has to be above 0 and at most 1",
        ),
        (5, "[tasks.t]\non = [\"a\"]\nkind = \"digest\"\nshard = 2.0", "a task has no 'shard' here"),
        (6, "[tasks.t]\non = [\"a\"]\nkind = \"smell\"", "a task of the kind 'smell'"),
        (7, "[tasks.t]\non = []\nkind = \"rtt\"", "names nobody"),
        (8, "[tasks.t]\non = [\"a\"]\nkind = \"rtt\"\nevery = \"1s\"", "take 'every' out"),
        (
            9,
            "[meshes.m]\nmembers = [\"a\", \"b\"]\nmethod = \"tcp\"\nevery = \"1min\"",
            "give probes.a an address",
        ),
        (10, "[meshes.m]\nmembers = [\"a\"]\nmethod = \"ftp\"\nevery = \"1min\"", "there is no method 'ftp'"),
        (11, "[joins.j]\ntask = \"t\"\npoints = [\"a\", \"b\"]", "there is no task 't'"),
        (
            12,
            "[joins.j]\ntask = \"t\"\npoints = [\"a\", \"b\"]\n[tasks.t]\non = [\"a\"]\nkind = \"digest\"",
            "'b' does not run",
        ),
        (
            13,
            "[joins.j]\ntask = \"t\"\npoints = [\"a\", \"b\"]\n[tasks.t]\non = [\"all\"]\nkind = \"rtt\"",
            "makes no digests",
        ),
        (14, "[colours]\nred = 1", "unknown field `colours`"),
        (15, "[exporters.a]\naddress = \"192.0.2.1\"", "not as a probe"),
        (
            16,
            "[exporters.c]\naddress = \"192.0.2.1\"\n[exporters.d]\naddress = \"::ffff:192.0.2.1\"",
            "exporters.d: has the address of 'c'; give both their 'domain'",
        ),
        (
            17,
            "[exporters.c]\naddress = \"192.0.2.1\"\n[joins.j]\npoints = [\"c\", \"a\"]",
            "joins.j: needs 'task'",
        ),
        (18, "[exporters.c]\naddress = \"192.0.2.1\"\n[joins.j]\npoints = [\"c\"]", "needs two points"),
        (19, "[meshes.m]\nmembers = [\"a\"]\nmethod = \"stamp\"\nspread = \"1s\"", "which is not there"),
        (
            20,
            "[meshes.m]\nmembers = [\"a\"]\nmethod = \"tcp\"\nevery = \"1min\"\nspread = \"2min\"",
            "'spread' is longer than 'every', 1min",
        ),
        (
            21,
            "[tasks.t]\non = [\"a\"]\nkind = \"rtt\"\n[suppression]\ntasks = [\"t/eth0\", \"u.b\"]\npassive = true",
            "suppression: there is no task or mesh 'u.b'; there are: t",
        ),
    ];
    for (row, text, want) in rows {
        let said = fault(&format!("{TWO}{text}"));
        assert!(said.contains(want), "row {row}: {said}");
    }
    assert!(fault(&format!("period = \"1 fortnight\"\n{TWO}")).contains("ns, us, ms, s, min, h or d"));
    assert!(fault(&format!("store_buffer = \"1KiB\"\n{TWO}")).contains("at least 64KiB"));
    assert!(fault(&format!("shard = \"3/2\"\n{TWO}")).contains("shard: '3/2' is no part"));
    assert!(fault(&format!("ipfix = [\"4739\"]\n{TWO}")).contains("udp://[::]:4739"));
    assert!(fault(&format!("ipfix = [\"tls://:4740\"]\n{TWO}")).contains("needs the certificate and key"));
    assert!(fault(&format!("export = [\"sctp://a\"]\n{TWO}")).contains("does not begin with tcp://"));
    assert!(fault(&format!("export = [\"tls://a\"]\n{TWO}")).contains("needs 'export_ca'"));
}

/// The file of two probes with a join.
fn with_join(more: &str) -> String {
    let task = "[tasks.t]\non = [\"all\"]\nkind = \"digest\"\n";
    format!("{TWO}{task}[joins.j]\ntask = \"t\"\npoints = [\"a\", \"b\"]\n{more}\n")
}

#[test]
fn a_join_that_cannot_be_says_why() {
    let both = "direction = \"given\"\npairs = [[\"a\", \"b\"], [\"b\", \"a\"]]";
    for (more, want) in [
        ("direction = \"given\"", "joins.j: direction = \"given\" needs 'pairs'"),
        (both, "joins.j: the pair from 'b' to 'a' contradicts another"),
        ("direction = \"uphill\"", "unknown variant `uphill`, expected `by_hops` or `given`"),
        ("clocks_apart = \"2d\"", "clocks_apart cannot be"),
        ("lanes = 0", "at least one lane"),
        ("most_sightings = 10", "room for 1024 sightings"),
    ] {
        let said = fault(&with_join(more));
        assert!(said.contains(want), "{more}: {said}");
    }
    let said = fault(&format!("shard = \"1/2\"\n{}", with_join("lanes = 3")));
    assert!(said.contains("a multiple of the collectors"), "{said}");
    let said = fault(&with_join("").replace("joins.j", "joins.\"../j\""));
    assert!(said.contains("a join's name is that of a file"), "{said}");
}

#[test]
fn interfaces_and_marked_blocks_that_cannot_be_joined_say_why() {
    let task =
        |kind: &str| format!("{TWO}[tasks.t]\non = [\"all\"]\nkind = {kind}\n[joins.j]\ntask = \"t\"\n");
    let (digest, marking) = (task("\"digest\""), task("\"marking\"\ncolour_bit = 0"));
    for (text, want) in [
        (
            format!("{digest}points = [\"a/eth0\", \"x/eth0\"]"),
            "'x/eth0' is an interface of a probe, and 'x' is none",
        ),
        (format!("{digest}points = [\"a/eth0\", \"a/\"]"), "'' is no name of an interface"),
        (format!("{digest}points = [\"a/eth0\", \"a\"]"), "'a' and 'a/eth0' would see the same packets"),
        (format!("{digest}points = [\"a/eth0\"]"), "needs two points at least"),
        (
            format!("{marking}points = [\"a\", \"b\"]"),
            "marked packets go from one point to another: name 'pairs'",
        ),
        (
            format!("{marking}points = [\"a\", \"b\"]\npairs = [[\"a\", \"a\"]]"),
            "name 'pairs' of two points each",
        ),
        (
            format!(
                "{marking}points = [\"a\", \"c\"]\npairs = [[\"a\", \"c\"]]\n[exporters.c]\naddress = \"192.0.2.1\"\n"
            ),
            "exporters of others report no marked blocks",
        ),
    ] {
        let said = fault(&text);
        assert!(said.contains(want), "{text}: {said}");
    }
    let good = [
        format!("{digest}points = [\"a/eth0\", \"a/eth1\", \"b\"]"),
        format!("{marking}points = [\"a/eth0\", \"b\"]\npairs = [[\"a/eth0\", \"b\"]]"),
    ];
    assert!(good.iter().all(|text| Config::read(text).is_ok()));
}

#[test]
fn words_of_a_join_become_its_settings() {
    let more =
        "direction = \"given\"\npairs = [[\"a\", \"b\"]]\nclocks_apart = \"5ms\"\nmost_sightings = 5000";
    let config = Config::read(&with_join(more)).unwrap();
    let settings = &crate::joins::setups(&config)["j"].settings;
    assert_eq!(settings.pairs.iter().map(|pair| pair.direction).collect::<Vec<_>>(), [Direction::Given]);
    assert_eq!((settings.clocks_apart, settings.most_sightings), (Span::from_millis(5), 5000));
    assert_eq!(Config::read(&config.to_toml().unwrap()).unwrap(), config);
}

#[test]
fn what_is_usual_need_not_be_written_and_the_text_reads_back() {
    let text = format!(
        "{TWO}[tasks.v]\non = [\"all\"]\nkind = \"volume\"\nby = [\"source\"]\n[tasks.d]\non = [\"a\", \"b\"]\nkind = \"digest\"\n\
[joins.j]\ntask = \"d\"\npoints = [\"all\"]\npatience = \"1s\"\n\
[exporters.c]\naddress = \"192.0.2.1\"\n[exporters.d]\naddress = \"192.0.2.1\"\ndomain = 7\n[joins.o]\npoints = [\"c\", \"d\"]\n"
    );
    let config = Config::read(&text).unwrap();
    assert!(matches!(config.tasks["v"].what, netaware_wire::lmap::What::Volume { keys: 10_000, .. }));
    let again = Config::read(&config.to_toml().unwrap()).unwrap();
    assert_eq!(again, config);
}

#[test]
fn paths_start_at_the_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("collect.toml");
    std::fs::write(&path, TWO).unwrap();
    let config = Config::load(&path).unwrap();
    assert_eq!(config.probes["a"].key_file.as_deref(), Some(folder.path().join("a.key").as_path()));
    assert_eq!(config.store.as_deref(), folder.path().join("netaware-collect/fleet.db").to_str());
    let missing = Config::load(&folder.path().join("none.toml")).unwrap_err().to_string();
    assert!(missing.contains("cannot read") && missing.contains("none.toml"), "{missing}");
}

#[test]
fn an_instruction_that_is_too_long_is_found_before_it_is_sent() {
    let probes: String = (0..140).fold(String::new(), |text, n| {
        text + &format!("[probes.p{n}]\nkey_file = \"k\"\naddress = \"192.0.2.1\"\n")
    });
    let said = fault(&format!("{probes}[meshes.m]\nmembers = [\"all\"]\nmethod = \"stamp\"\n"));
    assert!(said.contains("'tasks' has to be at most 128 (139 tasks)"), "{said}");
}

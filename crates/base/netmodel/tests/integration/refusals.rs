//! What a refused scenario says, word for word: people read it beside their file.

use netaware_netmodel::Scenario;

/// A sane hop on lines 1 to 4; what is under test follows.
const SANE: &str = "about = 'x'\n[[hop]]\nrate = '10Mbit/s'\ndelay = '1ms'\n";

/// What line 5 and those after it say, and how the refusal begins.
const BROKEN: &[(&str, &str)] = &[
    ("rate = 1", "line 5, column 1: this is no TOML: duplicate key"),
    ("queue = { bytes = 15000 ", "line 5, column 24: this is no TOML: "),
    ("dealy = '1ms'", "line 5, column 1: hop[0].dealy: is no field of this table; one of queue, overhead,"),
    ("mtu = 10", "line 5, column 7: hop[0].mtu: is 10 bytes; a size from 68 to 65535 bytes would do"),
    ("mtu = -1", "line 5, column 7: hop[0].mtu: is negative; a size from 68 to 65535 bytes would do"),
    (
        "forward.rate = '0bit/s'",
        "line 5, column 16: hop[0].forward.rate: is zero; a rate from 1.00 kbit/s to 1.00 Tbit/s would do",
    ),
    (
        "forward.rate = '2Tbit/s'",
        "line 5, column 16: hop[0].forward.rate: is 2.00 Tbit/s; a rate from 1.00 kbit/s to 1.00 Tbit/s would do",
    ),
    (
        "reverse.delay = '-1ms'",
        "line 5, column 17: hop[0].reverse.delay: is negative: \"-1ms\"; a time such as \"20us\" would do",
    ),
    (
        "reverse.delay = 3",
        "line 5, column 17: hop[0].reverse.delay: is a bare integer; a time such as \"20us\" would do",
    ),
    (
        "v6.delay = '3'",
        "line 5, column 12: hop[0].v6.delay: '3' needs a unit: ns, us, ms, s, min, h or d, as in '20us'",
    ),
    (
        "v6.delay = '3h'",
        "line 5, column 12: hop[0].v6.delay: is 10800 s; a time from 0 ns to 60.0 s would do",
    ),
    (
        "loss = 1.5",
        "line 5, column 8: hop[0].loss: is 1.5; a probability from 0 to 1, or \"0%\" to \"100%\", would do",
    ),
    ("loss = nan", "line 5, column 8: hop[0].loss: is NaN; a probability"),
    ("loss = { every = 0 }", "line 5, column 18: hop[0].loss.every: is 0; a whole number from 1 to"),
    (
        "outages = [{ at = '4s', for = '2s', every = '1s' }]",
        "line 5, column 12: hop[0].outages[0]: begins again before it has ended; for = \"2s\", shorter than every,",
    ),
    (
        "outages = [{ for = '2s' }]",
        "line 5, column 12: hop[0].outages[0]: has no 'at'; at = \"10s\" would do",
    ),
    (
        "filters = [{ protocol = 'udp', action = 'reset' }]",
        "line 5, column 12: hop[0].filters[0]: resets what is not known to be TCP; protocol = \"tcp\" would do",
    ),
    (
        "filters = [{ port = 80, action = 'drop' }]",
        "line 5, column 12: hop[0].filters[0]: looks at a port; protocol = \"tcp\" or \"udp\" would do",
    ),
    ("filters = [{ protocol = 'udp' }]", "line 5, column 12: hop[0].filters[0]: has no 'action'"),
    (
        "filters = [{ action = 'limit', rate = '2Mbit/s', burst = 100 }]",
        "line 5, column 58: hop[0].filters[0].burst: is 100 bytes; a size from 1500 to",
    ),
    ("rewrite = { dscp = 64 }", "line 5, column 20: hop[0].rewrite.dscp: is 64; a whole number from 0 to 63"),
    (
        "queue = { fair = true, codel = true }",
        "line 5, column 9: hop[0].queue: is fair, so that no wait is known when a packet comes;",
    ),
    (
        "queue = { fair = true, packets = 9 }\naggregation = {}",
        "line 2, column 1: hop[0]: has a forward queue that is fair besides aggregation",
    ),
    ("[host.a]\nlacks = 'v5'", "line 6, column 9: host.a.lacks: is \"v5\"; \"v4\" or \"v6\" would do"),
    ("[nat]\nkind = 'nat44'", "line 5, column 1: nat: has no 'idle'; idle = \"30s\" would do"),
    (
        "[nat]\nkind = 'nat44'\nidle = '30s'\nrebinds = ['9s', '9s']",
        "line 8, column 18: nat.rebinds[1]: is not later than the instant before it",
    ),
    ("queue = {}", "line 5, column 9: hop[0].queue: has no limit; bytes, packets or time would do"),
    ("queue = { bytes = 1, time = '1s' }", "line 5, column 9: hop[0].queue: has several limits;"),
    (
        "queue = { bytes = 100 }",
        "line 2, column 1: hop[0]: has a forward queue of 100 bytes, less than one packet",
    ),
    (
        "bucket = { rate = '1Mbit/s', burst = 100, kind = 'shaper' }",
        "line 2, column 1: hop[0]: has a forward token bucket of 100 bytes, which a packet of 1500 bytes",
    ),
    (
        "bucket = { rate = '1Mbit/s', burst = 9000, kind = 'leaky' }",
        "line 5, column 51: hop[0].bucket.kind: is \"leaky\"; \"shaper\" or \"policer\" would do",
    ),
    (
        "members = { count = 65 }",
        "line 5, column 21: hop[0].members.count: is 65; a whole number from 1 to 64",
    ),
    ("rate_changes = 3", "line 5, column 1: hop[0].rate_changes: is no field"),
    (
        "v4.rate = [{ at = '1s', value = '1Mbit/s' }]",
        "line 5, column 12: hop[0].v4.rate[0]: leaves the time before it open; at = \"0s\" would do",
    ),
    (
        "jitter = { distribution = 'pareto', mean = '1ms' }",
        "line 5, column 10: hop[0].jitter: has no 'alpha'; alpha = 1.5 would do",
    ),
    (
        "answers = { delay = '0s' }",
        "line 5, column 21: hop[0].answers.delay: is 0 ns; a time from 1.00 us to 60.0 s",
    ),
    (
        "[[cross]]\nenter = 1\npattern = 'poisson'\nload = 1",
        "line 6, column 9: cross[0].enter: is 1; a whole number from 0 to 0",
    ),
    (
        "[[cross]]\nenter = 0\npattern = 'poisson'",
        "line 5, column 1: cross[0]: has no rate; rate = \"50Mbit/s\" or load = 0.5 would do",
    ),
    (
        "[[cross]]\nenter = 0\npattern = 'fractal'",
        "line 7, column 11: cross[0].pattern: is \"fractal\"; \"constant\" or \"poisson\"",
    ),
    (
        "[[hop]]\nrate = '1Mbit/s'\n[[cross]]\nenter = 1\nleave = 0",
        "line 9, column 9: cross[0].leave: is 0, but traffic from \"a\" that enters at hop 1 never gets there; a hop not before 1 would do",
    ),
    (
        "[[cross]]\nenter = 0\nfrom = 'b'\npattern = 'poisson'\nload = 0.5\nstart = '5s'\nstop = '5s'",
        "line 5, column 1: cross[0]: stops at 5.00 s, before it starts",
    ),
    ("[host.c]", "line 5, column 7: host.c: is no field of this table; one of a, b would do"),
    (
        "[host.a]\nclock = { offset = 'soon' }",
        "line 6, column 20: host.a.clock.offset: 'soon' does not start with a decimal number",
    ),
];

fn refusal(text: &str) -> String {
    match Scenario::parse(text) {
        Ok(scenario) => panic!("taken: {scenario:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_broken_field_is_named_with_line_and_column_and_what_would_do() {
    let mut wrong = Vec::new();
    for (lines, want) in BROKEN {
        let found = refusal(&format!("{SANE}{lines}\n"));
        if !found.starts_with(want) {
            wrong.push(format!("{lines}\n  says {found}\n  not  {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_without_the_essentials_is_refused() {
    let rows = [
        ("", "line 1, column 1: has no 'about'; about = \"one line on what this path is like\" would do"),
        ("about = ''", "line 1, column 9: about: is not one line;"),
        ("about = 'x'", "line 1, column 1: has no 'hop'; [[hop]] with a rate and a delay would do"),
        ("about = 'x'\nhop = []", "line 2, column 7: hop: has 0 entries; 1 to 64 would do"),
        (
            "about = 'x'\n[[hop]]\ndelay = '1ms'",
            "line 2, column 1: hop[0]: has no rate for its forward direction;",
        ),
    ];
    for (text, want) in rows {
        let found = refusal(text);
        assert!(found.starts_with(want), "says {found}\nnot  {want}");
    }
}

#[test]
fn more_than_the_bounds_is_refused() {
    let hops = "[[hop]]\nrate = '1Mbit/s'\n".repeat(65);
    assert!(refusal(&format!("about = 'x'\n{hops}")).ends_with("hop: has 65 entries; 1 to 64 would do"));
    let cross = "[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.1\n".repeat(65);
    assert!(refusal(&format!("{SANE}{cross}")).ends_with("cross: has 65 entries; 0 to 64 would do"));
    let large = format!("{SANE}#{}", " ".repeat(1 << 20));
    assert!(refusal(&large).ends_with("at most 1 MiB would do"));
}

/// Lines of a hop, or what follows it; what may just stand for the question mark; and what may not
/// any more.
const BOUNDS: &[(&str, &str, &str)] = &[
    ("forward.rate = '?'", "1Tbit/s", "1.1Tbit/s"),
    ("forward.rate = '?'", "1kbit/s", "999bit/s"),
    ("v6.delay = '?'", "60s", "60.1s"),
    ("mtu = ?", "65535", "65536"),
    ("mtu = ?", "68", "67"),
    ("loss = '?%'", "100", "101"),
    ("members = { count = ? }", "64", "65"),
    ("queue = { bytes = ? }", "1500", "1499"),
    ("overhead = 38\nqueue = { bytes = ? }", "1538", "1537"),
    ("bucket = { rate = '1Mbit/s', kind = 'shaper', burst = ? }", "1500", "1499"),
    ("overhead = 38\nbucket = { rate = '1Mbit/s', kind = 'shaper', burst = ? }", "1538", "1537"),
    ("queue = { codel = true? }", "", ", time = '1s'"),
    ("v4.rate = [{ at = '0s', value = '1Mbit/s' }, { at = '?', value = '2Mbit/s' }]", "1ns", "0s"),
    ("[host.a]\nclock = { offset = '?' }", "8760h", "8761h"),
    ("[host.a]\nclock = { offset = '-?' }", "8760h", "8761h"),
    ("[host.a]\nclock = { skew_ppm = ? }", "-100000.0", "-100001.0"),
    ("[host.a]\nclock = { steps = [{ at = '1s', by = '1ms' }, { at = '?', by = '1ms' }] }", "2s", "1s"),
];

/// The same of cross traffic.
const CROSS_BOUNDS: &[(&str, &str, &str)] = &[
    ("load = ?", "10", "10.5"),
    ("load = 1\nsizes = ?", "20", "19"),
    ("load = 1\nstart = '?'", "720h", "721h"),
    ("load = 1\nsteps = [{ at = '1s', factor = 1 }, { at = '?', factor = 0 }]", "2s", "1s"),
    ("load = 1\nsquare = { period = '?' }", "24h", "25h"),
    ("load = 1\nsquare = { period = '1s', high = 0, low = ? }", "1", "0"),
    ("load = 1\nleave = ?", "1", "0"),
    ("load = 1\nfrom = 'b'\nleave = ?", "1", "2"),
];

#[test]
fn what_stands_at_a_bound_is_taken_and_what_is_beyond_is_refused() {
    let cross =
        "[[hop]]\nrate = '1Mbit/s'\n[[hop]]\nrate = '1Mbit/s'\n[[cross]]\npattern = 'poisson'\nenter = 1\n";
    let of_cross = CROSS_BOUNDS.iter().map(|row| (cross, row));
    for (before, &(lines, taken, refused)) in BOUNDS.iter().map(|row| ("", row)).chain(of_cross) {
        let parsed = |value: &str| Scenario::parse(&format!("{SANE}{before}{}\n", lines.replace('?', value)));
        assert!(parsed(taken).is_ok(), "{lines}, {taken}: {:?}", parsed(taken));
        assert!(parsed(refused).is_err(), "{lines}, {refused}");
    }
}

#[test]
fn as_much_as_the_bounds_allow_is_taken() {
    let padded = |length: usize| format!("{SANE}#{}", " ".repeat(length - SANE.len() - 1));
    assert!(Scenario::parse(&padded(1 << 20)).is_ok());
    assert!(refusal(&padded((1 << 20) + 1)).contains("the file has 1048577 bytes"));
    let hops = "[[hop]]\nrate = '1Mbit/s'\n".repeat(64);
    assert!(Scenario::parse(&format!("about = 'x'\n{hops}")).is_ok());
}

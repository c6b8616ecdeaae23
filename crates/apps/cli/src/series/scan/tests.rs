use clap::CommandFactory;

use super::*;
use crate::cli::Cli;

fn scan(command: &str, texts: &[&str]) -> Result<Scan, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    Scan::parse(&texts, Cli::command().find_subcommand(command).unwrap())
}

fn values(command: &str, text: &str) -> Vec<String> {
    let scan = scan(command, &[text]).unwrap();
    (0..scan.count()).map(|index| scan.point(index)[0].1.clone()).collect()
}

#[test]
fn ranges_and_lists_are_what_they_say() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("udp", "spacing=0us..30us+10us", &["0us", "10us", "20us", "30us"]),
        ("udp", "spacing=0..30us+10", &["0us", "10us", "20us", "30us"]),
        ("udp", "spacing=0us..29us+10us", &["0us", "10us", "20us"]),
        ("udp", "spacing=1us..2us+0.5us", &["1000ns", "1500ns", "2000ns"]),
        ("udp", "length=64..80+8", &["64", "72", "80"]),
        ("tcp", "streams=1..3+1", &["1", "2", "3"]),
        ("udp", "rate=1M..8M*2", &["1Mbit/s", "2Mbit/s", "4Mbit/s", "8Mbit/s"]),
        ("udp", "rate=1M..2M*1.5", &["1000000bit/s", "1500000bit/s"]),
        ("tcp", "window=64KiB..256KiB*2", &["64KiB", "128KiB", "256KiB"]),
        ("tcp", "streams=1..9*1.5", &["1", "2", "3", "4", "6", "9"]),
        ("tcp", "window=64K,1MiB,100000", &["64KiB", "1MiB", "100000"]),
        ("tcp", "congestion=cubic,bbr", &["cubic", "bbr"]),
        ("latency", "interval=1ms,2ms", &["1ms", "2ms"]),
        ("tcp", "streams=5", &["5"]),
        ("tcp", "streams=5..5+1", &["5"]),
    ];
    for (n, (command, text, want)) in rows.iter().enumerate() {
        assert_eq!(values(command, text), *want, "row {n}: {text}");
    }
}

/// The step of the second was 512 KiB and the first had a single value, 64 KiB.
#[test]
fn a_size_without_a_unit_is_in_bytes_whatever_the_unit_of_the_end() {
    let grown = values("tcp", "length=64..64KiB*2");
    assert_eq!((grown.len(), grown[0].as_str(), grown[10].as_str()), (11, "64B", "65536B"));
    assert_eq!(values("udp", "length=1KiB..2KiB+512"), ["1024B", "1536B", "2048B"]);
    assert_eq!(scan("udp", &["length=64..8K+64"]).unwrap().count(), 128);
    assert_eq!(values("udp", "length=64..80+8"), ["64", "72", "80"]);
}

#[test]
fn an_alias_means_the_option_itself() {
    assert_eq!(scan("latency", &["interval=1ms,2ms"]).unwrap().names().collect::<Vec<_>>(), ["spacing"]);
}

#[test]
fn the_first_option_changes_slowest() {
    let scan = scan("udp", &["length=64,1400", "spacing=10us..30us+10us"]).unwrap();
    let points: Vec<String> = (0..scan.count())
        .map(|index| scan.point(index).iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(points, ["64 10us", "64 20us", "64 30us", "1400 10us", "1400 20us", "1400 30us"]);
}

#[test]
fn a_far_point_is_exact_and_costs_no_memory() {
    let scan = scan("udp", &["spacing=1ns..999999ns+1ns"]).unwrap();
    assert_eq!(scan.count(), 999_999);
    assert_eq!(scan.point(123_455), [("spacing".to_owned(), "123456ns".to_owned())]);
    assert_eq!(scan.samples().len(), 3);
}

#[test]
fn samples_hold_every_listed_value_and_the_ends_of_each_range() {
    let scan = scan("udp", &["length=64,100,1400", "spacing=10us..90us+10us"]).unwrap();
    let samples = scan.samples();
    for length in ["64", "100", "1400"] {
        assert!(samples.iter().any(|point| point[0].1 == length), "{samples:?}");
    }
    assert_eq!(samples[0], scan.point(0));
    assert_eq!(samples.last().unwrap(), &scan.point(26));
    assert!(samples.iter().any(|point| point[1].1 == "90us" && point[0].1 == "64"));
}

#[test]
fn what_is_no_scan_is_refused_with_a_sentence() {
    let rows: &[(&str, &[&str], &str)] = &[
        ("udp", &["length"], "--scan length: write NAME=FROM..TO+STEP"),
        ("udp", &["lenght=1..2+1"], "'netaware udp' has no option --lenght"),
        ("udp", &["reverse=1,2"], "--reverse has no values"),
        ("udp", &["format=text,json"], "--format has no values"),
        ("udp", &["every=1s,2s"], "--every has no values"),
        ("udp", &["length=64..128"], "how to go on is missing"),
        ("udp", &["length=128..64+8"], "128 lies above 64"),
        ("udp", &["length=64..128+0"], "a step of zero"),
        ("udp", &["length=64..128*1"], "'1' is no factor"),
        ("udp", &["length=64..128*1.001"], "'1.001' is no factor"),
        ("udp", &["length=0..128*2"], "zero stays zero"),
        ("udp", &["length=a..b+c"], "does not start with a decimal number"),
        ("udp", &["spacing=1..2+1"], "needs a unit"),
        ("udp", &["length=64,,128"], "a value is missing"),
        ("udp", &["length="], "a value is missing"),
        ("tcp", &["congestion=a..b+c"], "--congestion takes no numbers"),
        ("udp", &["length=1,2", "length=3,4"], "--length is scanned twice"),
        ("udp", &["packets=1..1000001+1"], "more than 1000000 points"),
        ("udp", &["packets=1..9999999999999999999+1", "length=1..99999999999+1"], "more than 1000000 points"),
        ("udp", &["packets=18446744073709551615..18446744073709551616+1"], "too large"),
    ];
    for (n, (command, texts, want)) in rows.iter().enumerate() {
        let error = scan(command, texts).unwrap_err();
        assert!(error.contains(want), "row {n}: {error}");
    }
}

#[test]
fn growth_ends_at_the_largest_number() {
    let scan = scan("udp", &["packets=9223372036854775808..18446744073709551615*2"]).unwrap();
    assert_eq!(scan.count(), 2);
    assert_eq!(scan.point(1)[0].1, u64::MAX.to_string());
}

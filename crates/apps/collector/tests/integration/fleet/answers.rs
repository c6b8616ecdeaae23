//! Answers of a running collector, held against the schemas that its own description gives for
//! them.

use jsonschema::Validator;
use netaware_record::Interval;
use netaware_record::passive::{
    CapacityRow, CaptureLoss, DelayRow, DelayStatistics, FlowKey, MarkingRow, Period, Row, RttRow, TaskRow,
    TrafficRow, VolumeRow,
};
use netaware_units::{ByteCount, Span};
use netaware_wire::lmap::{FromProbe, ProbeStatus};
use serde_json::{Value, json};

use super::joined::periods;
use super::metrics::row;
use super::probe::{Probe, report};
use super::{Running, TWO, start};

/// Every word that a configuration can have somewhere.
const MORE: &str = r#"
[probes.c]
key_file = "a.key"
interface = "eth1"
address = "2001:db8::3"
responder = "c.example:14233"
stamp = "c.example"
links = ["uplink"]
position = [52.5, 13.4]
[groups]
some = ["a", "b"]
[retention]
periods = "3d"
[tasks.volume]
on = ["some"]
kind = "volume"
by = ["source"]
prefix = [24, 48]
filter = "udp"
[tasks.marking]
on = ["a"]
kind = "marking"
colour_bit = 1
[tasks.bulk]
on = ["a"]
kind = "measure"
command = "tcp"
target = "192.0.2.2"
every = "1h"
spread = "10min"
peer = "b"
[meshes.owd]
members = ["all"]
method = "stamp"
interval = "20ms"
[meshes.bulk]
members = ["some"]
method = "tcp"
every = "1h"
spread = "5min"
options = { duration = "5s" }
[suppression]
tasks = ["bulk"]
passive = false
"#;

/// The schema of a part of the document; what it refers to is looked up in the document.
fn schema(document: &Value, part: &Value) -> Validator {
    assert!(part.is_object() && part != &json!({}), "there is a schema: {part}");
    jsonschema::validator_for(&json!({ "allOf": [part], "components": document["components"] })).unwrap()
}

fn answer(document: &Value, path: &str, kind: &str) -> Validator {
    schema(document, &document["paths"][path]["get"]["responses"]["200"]["content"][kind]["schema"])
}

fn faults(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

#[track_caller]
fn fits(schema: &Validator, value: &Value) {
    assert_eq!(faults(schema, value), Vec::<String>::new(), "{value:#}");
}

/// One row of each kind that a probe can report.
fn rows(period: Period) -> Vec<TaskRow> {
    let key = FlowKey { source: Some("192.0.2.1".parse().unwrap()), ..FlowKey::default() };
    let mut delay = DelayStatistics::default();
    delay.observe(Span(1_000_000));
    let volume = VolumeRow {
        key: key.clone(),
        packets: 1,
        bytes: ByteCount(100),
        first_at: period.from,
        last_at: period.from,
        packets_error: 0,
        rest: false,
    };
    let traffic = TrafficRow {
        packets: 1,
        bytes: ByteCount(100),
        link_bytes: ByteCount(138),
        sent_link_bytes: ByteCount(138),
        utilisation: None,
        slices: vec![ByteCount(100)],
        slice: Span(1_000_000_000),
        sizes: delay.histogram.clone(),
        top: vec![volume.clone()],
    };
    let marking = MarkingRow {
        key: key.clone(),
        colour: 1,
        block: 7,
        packets: 1,
        bytes: ByteCount(100),
        first_at: period.from,
        mean_at: period.from,
        marked_at: vec![period.from],
        late: 0,
    };
    let capacity = CapacityRow {
        key: key.clone(),
        method: "packet_pairs".into(),
        rate: Interval { estimate: 1e9, lo: 9e8, hi: 1.1e9, confidence: 0.95 },
        samples: 50,
        doubts: Vec::new(),
    };
    let of_pair = DelayRow { clock_bound: Some(Span(1000)), ..row(delay.clone()) };
    [
        Row::Volume(volume),
        Row::Traffic(traffic),
        Row::Marking(marking),
        Row::Capacity(capacity),
        Row::Rtt(RttRow { key, method: "spin_bit".into(), delay }),
        Row::Delay(Box::new(of_pair)),
    ]
    .map(|row| TaskRow { task: "t".into(), period, row, lost: CaptureLoss::default() })
    .into()
}

/// A probe that has said and sent all that a probe can.
fn reporting(collector: &Running) -> Probe {
    let mut probe = Probe::join(collector.address, "a");
    let period = periods(1)[0];
    let mut report = report("a", 1, period, 5);
    report.rows.extend(rows(period));
    probe.bytes(1, &[], &serde_json::to_vec(&report).unwrap());
    probe.until_taken(1);
    probe.say(&FromProbe::Status(ProbeStatus { running: vec!["bulk".into()], ..ProbeStatus::default() }));
    probe
}

#[test]
fn every_answer_is_as_the_description_says() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), &format!("{TWO}{MORE}"));
    let document = collector.ask("/api/v1/openapi.json");
    let _probe = reporting(&collector);
    for path in ["health", "probes", "tasks", "suppression", "joins", "runs", "delays"] {
        let path = format!("/api/v1/{path}");
        let said = collector.ask(&path);
        fits(&answer(&document, &path, "application/json"), &said);
        let is_empty =
            said.as_array().is_some_and(Vec::is_empty) || said["items"].as_array().is_some_and(Vec::is_empty);
        assert!(!is_empty, "{path}: nothing to look at");
    }
    let one = answer(&document, "/api/v1/probes/{name}", "application/json");
    fits(&one, &collector.ask("/api/v1/probes/a"));
    let task = answer(&document, "/api/v1/tasks/{name}", "application/json");
    for name in ["delay", "volume", "marking", "bulk"] {
        fits(&task, &collector.ask(&format!("/api/v1/tasks/{name}")));
    }
    let page = answer(&document, "/api/v1/rows/{kind}", "application/json");
    for kind in ["volume", "traffic", "rtt", "marking", "capacity", "digests"] {
        let said = collector.ask(&format!("/api/v1/rows/{kind}"));
        assert_eq!(said["items"][0]["row"]["kind"], kind, "{said}");
        fits(&page, &said);
    }
    let config = collector.client().ask("GET", "/api/v1/config", "").unwrap().body;
    let config: toml::Table = toml::from_str(&config).unwrap();
    let form = answer(&document, "/api/v1/config", "application/toml");
    fits(&form, &serde_json::to_value(config).unwrap());
    let refused = collector.client().ask("GET", "/api/v1/probes/nobody", "").unwrap();
    let problem = &document["paths"]["/api/v1/probes/{name}"]["get"]["responses"]["default"]["content"];
    let problem = schema(&document, &problem["application/json"]["schema"]);
    fits(&problem, &serde_json::from_str(&refused.body).unwrap());
}

#[test]
fn what_is_asked_for_is_taken_and_what_is_not_is_refused_by_the_description_too() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let document = collector.ask("/api/v1/openapi.json");
    let body = |path: &str| {
        let content = &document["paths"][path]["put"]["requestBody"]["content"];
        schema(&document, &content["application/json"]["schema"])
    };
    let (task, suppression) = (body("/api/v1/tasks/{name}"), body("/api/v1/suppression"));
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let authorization = format!("Bearer {}", collector.token.as_deref().unwrap());
    let put = |path: &str, value: &Value| {
        let request = agent.put(format!("http://{}{path}", collector.address));
        let request = request.header("Authorization", &authorization);
        request.content_type("application/json").send(value.to_string()).unwrap().status().as_u16()
    };
    let table = [
        (json!({ "on": ["a"], "kind": "volume" }), true),
        (json!({ "on": ["a"], "kind": "digest", "share": 0.5 }), true),
        (json!({ "on": ["a"], "kind": "stamp", "target": "192.0.2.2" }), true),
        (json!({ "on": ["a"], "kind": "colours" }), false),
        (json!({ "kind": "volume" }), false),
        (json!({ "on": "a", "kind": "volume" }), false),
    ];
    for (value, is_good) in table {
        assert_eq!(task.is_valid(&value), is_good, "{value}: {:?}", faults(&task, &value));
        assert_eq!(put("/api/v1/tasks/new", &value) == 200, is_good, "{value}");
    }
    let held = json!({ "tasks": ["new"], "passive": true, "until": null });
    fits(&suppression, &held);
    assert_eq!(put("/api/v1/suppression", &held), 200);
    assert!(!suppression.is_valid(&json!({ "tasks": "new" })));
}

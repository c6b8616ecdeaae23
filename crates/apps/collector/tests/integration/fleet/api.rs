use netaware_collector::{Client, OPENAPI};
use serde_json::Value;

use super::probe::Probe;
use super::{TWO, start};

const TASK: &str = "[tasks.volume]\non = [\"a\"]\nkind = \"volume\"\nby = [\"source\"]\n";

#[test]
fn everything_that_the_document_lists_is_served_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let served: Value = collector.ask("/api/v1/openapi.json");
    assert_eq!(served, serde_json::from_str::<Value>(OPENAPI).unwrap());
    let paths = served["paths"].as_object().unwrap();
    assert!(paths.len() > 10);
    for (path, methods) in paths {
        let real =
            path.replace("probes/{name}", "probes/a").replace("{name}", "delay").replace("{kind}", "volume");
        if methods.get("get").is_some() {
            let answer = collector.client().ask("GET", &real, "").unwrap();
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let json: Result<Value, _> = serde_json::from_str(&answer.body);
            assert_eq!(json.is_ok(), path != "/api/v1/config", "{path}");
            let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
            if schema["type"] == "array" {
                assert!(json.unwrap().is_array(), "{path}");
            }
        }
    }
    for (path, status) in [
        ("/api/v1/nothing", 404),
        ("/api/v1/probes/x", 404),
        ("/api/v1/rows/x", 404),
        ("/api/v1/delays?colour=red", 400),
    ] {
        let answer = collector.client().ask("GET", path, "").unwrap();
        assert_eq!(answer.status, status, "{path}");
        assert!(serde_json::from_str::<Value>(&answer.body).unwrap()["error"].is_string());
    }
}

#[test]
fn a_file_is_planned_and_applied_and_probes_hear_of_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let mut probe = Probe::join(collector.address, "a");
    let before = probe.instruction();
    let client = collector.client();
    let text = format!("{TWO}{TASK}");
    let plan = client.ask("POST", "/api/v1/plan", &text).unwrap();
    assert_eq!(plan.status, 200, "{}", plan.body);
    assert!(plan.body.contains(r#""change":"start","task":"volume""#), "{}", plan.body);
    assert_eq!(collector.ask("/api/v1/health")["number"], before.number, "a plan changes nothing");
    let applied = client.ask("PUT", "/api/v1/config", &text).unwrap();
    assert_eq!(applied.status, 200, "{}", applied.body);
    let after = probe.instruction();
    assert_eq!(after.number, before.number + 1);
    assert_eq!(after.tasks.keys().collect::<Vec<_>>(), ["delay", "volume"]);
    assert_eq!(after.tasks["delay"], before.tasks["delay"]);
    let wrong = client.ask("PUT", "/api/v1/config", "[groups]\nx = [\"nobody\"]\n").unwrap();
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("there is no probe 'nobody'"), "{}", wrong.body);
    assert_eq!(client.ask("DELETE", "/api/v1/tasks/volume", "").unwrap().status, 200);
    assert_eq!(probe.instruction().tasks.len(), 1);
}

#[test]
fn tokens_are_asked_for_and_the_page_loads_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "sesame\n").unwrap();
    let collector = start(folder.path(), &format!("{TWO}[access]\nadmin_token_file = \"token\"\n"));
    let address = format!("http://{}", collector.address);
    let ask = |token: Option<&str>, path: &str| {
        Client::new(&address, token.map(str::to_owned), None).unwrap().ask("GET", path, "").unwrap()
    };
    assert_eq!(ask(None, "/api/v1/probes").status, 401);
    assert_eq!(ask(Some("open"), "/metrics").status, 401);
    assert_eq!(ask(Some("sesame"), "/api/v1/probes").status, 200);
    for path in ["/", "/page.js", "/page.css"] {
        let body = ask(None, path).body;
        assert!(!body.is_empty());
        let foreign = body.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !foreign.contains("://") && !foreign.contains("style=") && !foreign.contains("<script>"),
            "{path}"
        );
    }
}

/// Any user of this host replaced the settings, swapped the keys of probes and read the password of
/// the store.
#[test]
fn a_neighbour_without_the_admin_token_neither_changes_nor_reads_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let number = || collector.ask("/api/v1/health")["number"].clone();
    let before = number();
    let token = collector.token.clone().unwrap();
    let swapped = TWO.replace("a.key", "b.key");
    let task = r#"{"on": ["a"], "kind": "volume"}"#;
    let rows = [
        ("GET", "/api/v1/config", ""),
        ("HEAD", "/api/v1/config", ""),
        ("PUT", "/api/v1/config", &*swapped),
        ("POST", "/api/v1/plan", &*swapped),
        ("PUT", "/api/v1/tasks/new", task),
        ("DELETE", "/api/v1/tasks/delay", ""),
        ("PUT", "/api/v1/suppression", r#"{"tasks": []}"#),
        ("DELETE", "/api/v1/suppression", ""),
    ];
    for guess in [None, Some("guess"), Some(""), Some(&token[..63])] {
        for (method, path, body) in rows {
            let answer = collector.client_with(guess).ask(method, path, body).unwrap();
            assert_eq!(answer.status, 403, "{method} {path} with {guess:?}: {}", answer.body);
            assert!(!answer.body.contains("key_file") && !answer.body.contains(&token), "{}", answer.body);
        }
        // What the fleet measured is still shown here.
        assert_eq!(collector.client_with(guess).ask("GET", "/api/v1/probes", "").unwrap().status, 200);
    }
    assert_eq!(number(), before);
    let config = collector.client().ask("GET", "/api/v1/config", "").unwrap();
    assert!(config.status == 200 && config.body.contains("key_file"), "{}", config.body);
    assert_eq!(collector.client().ask("PUT", "/api/v1/config", &swapped).unwrap().status, 200);
}

#[test]
fn a_reader_does_not_see_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "sesame\n").unwrap();
    let collector = start(folder.path(), &format!("{TWO}[access]\nread_token_file = \"token\"\n"));
    let reader = collector.client_with(Some("sesame"));
    assert_eq!(reader.ask("GET", "/api/v1/probes", "").unwrap().status, 200);
    assert_eq!(reader.ask("GET", "/api/v1/config", "").unwrap().status, 403);
    assert_eq!(collector.client_with(None).ask("GET", "/api/v1/probes", "").unwrap().status, 401);
    assert_eq!(collector.client().ask("GET", "/api/v1/config", "").unwrap().status, 200);
}

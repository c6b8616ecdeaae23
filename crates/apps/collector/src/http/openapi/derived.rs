//! The API's description, from the same types that are served.

use std::collections::BTreeMap;

use netaware_wire::lmap::{DEFAULT_PORT, Suppression};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::config::{Config, TaskRule};
use crate::http::api::{Applied, DelayPage, Health, RowPage};
use crate::joins::JoinView;
use crate::{LatestView, Plan, ProbeView, RunView};

struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    words: &'static [(&'static str, &'static str)],
    /// Type and schema of what is sent.
    takes: Option<(&'static str, Value)>,
    gives: Value,
}

const SPAN: [(&str, &str); 4] = [
    ("from", "First instant: ns since 1970, or a time before now such as -10min (usual)"),
    ("until", "First instant after it; now unless given"),
    ("limit", "Items at most, 1 to 10000; 1000 unless given"),
    ("after", "`next` of the page before"),
];

const DELAYS: &[(&str, &str)] = &[
    SPAN[0],
    SPAN[1],
    SPAN[2],
    SPAN[3],
    ("pair", "Two points in order, as in berlin,bern"),
    ("task", "Join or task"),
    ("version", "IP version, 4 or 6"),
    ("method", "passive or active"),
    ("resolution", "Rows of so much time are added up, as in 1min"),
];

const ROWS: &[(&str, &str)] = &[SPAN[0], SPAN[1], SPAN[2], SPAN[3], ("task", "Task"), ("probe", "Probe")];

/// Why something cannot be.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; answers are made in `http`")]
struct Problem {
    /// In words.
    error: String,
}

/// The whole document, from the types themselves.
pub fn derived_openapi() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let (operations, problem) = (operations(&mut schemas), of::<Problem>(&mut schemas));
    let mut paths = serde_json::Map::new();
    for operation in operations {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = operation.describe(&problem);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "netaware collector",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Times are nanoseconds: since 1970 for instants, signed for spans. Errors are {\"error\": \"…\"}.",
        },
        "servers": [{ "url": format!("http://127.0.0.1:{DEFAULT_PORT}") }],
        "security": [{ "token": [] }, {}],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    json!(schemas.subschema_for::<T>())
}

const JSON: &str = "application/json";
const TOML: &str = "application/toml";

fn operations(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let probe = of::<ProbeView>(schemas);
    let list = |of: &Value| json!({ "type": "array", "items": of });
    let (join, run) = (of::<JoinView>(schemas), of::<RunView>(schemas));
    let latest = of::<LatestView>(schemas);
    let (applied, plan) = (of::<Applied>(schemas), of::<Plan>(schemas));
    let (config, task) = (of::<Config>(schemas), of::<TaskRule>(schemas));
    let suppression = of::<Suppression>(schemas);
    let get =
        |path, summary, words, gives| Operation { method: "get", path, summary, words, takes: None, gives };
    let change = |method, path, summary, takes| Operation {
        method,
        path,
        summary,
        words: &[],
        takes,
        gives: applied.clone(),
    };
    vec![
        get("/api/v1/health", "How the collector is", &[], of::<Health>(schemas)),
        get("/api/v1/probes", "All probes", &[], list(&probe)),
        get("/api/v1/probes/{name}", "One probe", &[], probe),
        get("/api/v1/config", "collect.toml as it runs", &[], config.clone()),
        change("put", "/api/v1/config", "Run this collect.toml", Some((TOML, config.clone()))),
        Operation {
            method: "post",
            path: "/api/v1/plan",
            summary: "What this collect.toml would change",
            words: &[],
            takes: Some((TOML, config)),
            gives: plan,
        },
        get("/api/v1/tasks", "Tasks by name", &[], of::<BTreeMap<String, TaskRule>>(schemas)),
        get("/api/v1/tasks/{name}", "One task", &[], task.clone()),
        change("put", "/api/v1/tasks/{name}", "Make or change a task", Some((JSON, task))),
        change("delete", "/api/v1/tasks/{name}", "End a task", None),
        get(
            "/api/v1/suppression",
            "What is stopped; null: nothing",
            &[],
            json!({ "anyOf": [suppression, { "type": "null" }] }),
        ),
        change(
            "put",
            "/api/v1/suppression",
            "Stop tasks without taking them away",
            Some((JSON, suppression)),
        ),
        change("delete", "/api/v1/suppression", "Let them go on", None),
        get("/api/v1/joins", "Joins and the paths that packets take", &[], list(&join)),
        get("/api/v1/runs", "Throughput tests: when, how often, how often missed", &[], list(&run)),
        get("/api/v1/latest", "What each active task found last", &[], list(&latest)),
        get("/api/v1/delays", "Delays between points", DELAYS, of::<DelayPage>(schemas)),
        get(
            "/api/v1/rows/{kind}",
            "Rows of another kind: volume, traffic, rtt, marking, capacity, digests, paths, active",
            ROWS,
            of::<RowPage>(schemas),
        ),
    ]
}

impl Operation {
    fn describe(&self, problem: &Value) -> Value {
        let in_path = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut words: Vec<Value> = in_path
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        words.extend(self.words.iter().map(|(name, what)| {
            json!({ "name": name, "in": "query", "description": what, "schema": { "type": "string" } })
        }));
        let kind = if self.path == "/api/v1/config" && self.method == "get" { TOML } else { JSON };
        let mut described = json!({
            "summary": self.summary,
            "parameters": words,
            "responses": {
                "200": { "description": "It is so", "content": { kind: { "schema": self.gives } } },
                "default": { "description": "It cannot be", "content": { JSON: { "schema": problem } } },
            },
        });
        if let Some((kind, schema)) = &self.takes {
            described["requestBody"] =
                json!({ "required": true, "content": { *kind: { "schema": schema } } });
        }
        described
    }
}

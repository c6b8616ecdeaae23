//! Schemas of what is written in `collect.toml` otherwise than its types say.

use std::borrow::Cow;

use netaware_wire::lmap::What;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::names::{Size, Time};
use super::task::{Frame, TaskRule, USUAL};

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A time with its unit, as in 10min; d, h, min, s, ms, us or ns",
            "pattern": "^[0-9.]+ ?[a-z]+$",
        })
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Bytes, as in 4GiB; B, kB, MB, GB, KiB, MiB or GiB",
            "pattern": "^[0-9.]+ ?[A-Za-z]*$",
        })
    }
}

impl JsonSchema for TaskRule {
    fn schema_name() -> Cow<'static, str> {
        "TaskRule".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut what = What::json_schema(schemas);
        let kinds = what.get_mut("oneOf").and_then(Value::as_array_mut);
        let required =
            kinds.into_iter().flatten().filter_map(|kind| kind.get_mut("required")?.as_array_mut());
        for words in required {
            words.retain(|word| word != "share" && USUAL.iter().all(|(_, usual, _)| word != usual));
        }
        json_schema!({ "allOf": [Frame::json_schema(schemas), what] })
    }
}

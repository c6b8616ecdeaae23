//! `netaware schema`: what `--format json` means.

use clap::Args;

use crate::exit::Exit;
use crate::sink::Sink;

/// Print the JSON Schema of a record
#[derive(Debug, Args)]
#[command(
    long_about = "Prints the JSON Schema (2020-12) of what --format json prints and of the last line of ndjson."
)]
pub(crate) struct Schema {}

impl Schema {
    /// Prints it.
    ///
    /// # Errors
    /// It cannot be written.
    #[expect(clippy::unused_self, reason = "all commands run the same way")]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let schema: serde_json::Value = serde_json::from_str(netaware_record::JSON_SCHEMA)?;
        let text = serde_json::to_string_pretty(&schema)?;
        Sink::Stdout.write(format!("{text}\n").as_bytes())?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::Validator;

    use crate::render::fixture;

    fn schema() -> Validator {
        jsonschema::validator_for(&serde_json::from_str(netaware_record::JSON_SCHEMA).unwrap()).unwrap()
    }

    #[test]
    fn every_kind_of_record_obeys_the_schema() {
        let schema = schema();
        for record in fixture::all() {
            let value = serde_json::to_value(&record).unwrap();
            let errors: Vec<String> =
                schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", record.command);
        }
    }

    #[test]
    fn a_record_without_its_id_does_not_obey() {
        let schema = schema();
        let mut value = serde_json::to_value(fixture::test()).unwrap();
        value.as_object_mut().unwrap().remove("id");
        assert!(!schema.is_valid(&value));
    }
}

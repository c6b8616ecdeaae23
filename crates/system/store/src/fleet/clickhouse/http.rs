//! ClickHouse's HTTP interface: a statement in, text out. The connection is kept between requests.

use std::time::Duration;

use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::address::Address;
use crate::fleet::FleetError;

/// A server that takes longer to accept a connection is taken for away.
const CONNECT: Duration = Duration::from_secs(5);

/// A statement that takes longer is given up; an insert is then sent again.
const STATEMENT: Duration = Duration::from_mins(1);

/// Answers are pages, so none is longer than this unless something is wrong.
const LONGEST_ANSWER: u64 = 256 << 20;

/// Characters of a refusal that are worth repeating.
const LONGEST_REASON: usize = 400;

/// A kept connection to one database.
#[derive(Debug, Clone)]
pub(super) struct Http {
    agent: Agent,
    pub(super) address: Address,
}

impl Http {
    pub(super) fn new(address: Address) -> Result<Self, FleetError> {
        let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(netaware_tls::provider());
        if let Some(path) = &address.ca {
            let wrong = |why| FleetError::Place { given: path.display().to_string(), why };
            let pem = std::fs::read(path).map_err(|_| wrong("the file of ca= cannot be read"))?;
            let items = parse_pem(&pem).filter_map(Result::ok);
            let certificates: Vec<_> = items
                .filter_map(|item| match item {
                    PemItem::Certificate(certificate) => Some(certificate),
                    _ => None,
                })
                .collect();
            if certificates.is_empty() {
                return Err(wrong("the file of ca= holds no certificate"));
            }
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(STATEMENT))
            .http_status_as_error(false)
            .tls_config(tls.build())
            .build();
        Ok(Self { agent: config.into(), address })
    }

    /// A statement within the database.
    pub(super) fn ask(&self, sql: &str) -> Result<String, FleetError> {
        self.post(&[("database", &self.address.database)], sql.as_bytes())
    }

    /// A statement that does not need the database to be there.
    pub(super) fn ask_server(&self, sql: &str) -> Result<String, FleetError> {
        self.post(&[], sql.as_bytes())
    }

    /// Rows in RowBinary. The same token twice within the window of the table counts once, in the
    /// views on the table too.
    pub(super) fn insert(
        &self,
        table: &str,
        columns: &str,
        token: &str,
        rows: &[u8],
    ) -> Result<(), FleetError> {
        let statement = format!("INSERT INTO {table} ({columns}) FORMAT RowBinary");
        let options = [
            ("database", self.address.database.as_str()),
            ("query", &statement),
            ("insert_deduplicate", "1"),
            ("insert_deduplication_token", token),
            ("deduplicate_blocks_in_dependent_materialized_views", "1"),
            // One block, so that all of an insert is there or nothing; asynchronous inserts would
            // say yes before it is.
            ("async_insert", "0"),
            // On a cluster the same: else the first server says yes before the shards have it. An
            // older name that all versions know.
            ("insert_distributed_sync", "1"),
            ("max_insert_block_size", "10000000"),
            ("min_insert_block_size_rows", "10000000"),
            ("min_insert_block_size_bytes", "1073741824"),
            // ClickHouse 26.2 gave inserts of more than one block a thread each.
            ("max_insert_threads", "1"),
        ];
        self.post(&options, rows).map(|_| ())
    }

    fn post(&self, options: &[(&str, &str)], body: &[u8]) -> Result<String, FleetError> {
        let away = |reason: String| FleetError::Away { place: self.address.shown(), reason };
        let request = self
            .agent
            .post(&self.address.endpoint)
            .query_pairs(options.iter().copied())
            .header("X-ClickHouse-User", &self.address.user)
            .header("X-ClickHouse-Key", &self.address.password);
        let mut response = request.send(body).map_err(|error| away(error.to_string()))?;
        let is_good = response.status().is_success();
        // Errors after the first bytes of an answer come in its text, marked in the last header
        // only then; a page is small enough to be complete before it is sent.
        let text = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        let text = text.map_err(|error| away(error.to_string()))?;
        if is_good {
            return Ok(text);
        }
        let reason = text.lines().next().unwrap_or_default().chars().take(LONGEST_REASON).collect();
        Err(FleetError::Refused { place: self.address.shown(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_there_is_an_error_that_names_the_place() {
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let http = Http::new(Address::parse(&format!("clickhouse://127.0.0.1:{port}/x")).unwrap()).unwrap();
        let error = http.ask("SELECT 1").unwrap_err();
        assert!(
            matches!(&error, FleetError::Away { place, .. } if place.contains(&port.to_string())),
            "{error}"
        );
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let place = format!("clickhouses://h/x?ca={}", file.path().display());
        assert!(Http::new(Address::parse(&place).unwrap()).is_err());
    }
}

//! Reading the records of a series, one after the other, because all together may not fit into memory.

use netaware_record::Record;
use rusqlite::params;
use uuid::Uuid;

use crate::find::stored_form;
use crate::{FindError, Store};

/// How the JSON of a record of a series goes on with its id; a quote within a text is escaped, so nothing else does.
const MARK: &str = "\"series\":{\"id\":\"";

impl Store {
    /// Shows `take` all records of the series with this id, or of the only one whose id begins so, oldest first, and tells
    /// the id.
    ///
    /// # Errors
    /// None or several series match, or a row cannot be read.
    pub fn records_of_series(
        &self,
        id_or_prefix: &str,
        take: &mut dyn FnMut(Record),
    ) -> Result<Uuid, FindError> {
        let prefix =
            stored_form(id_or_prefix).ok_or_else(|| FindError::NotAnId { given: id_or_prefix.to_owned() })?;
        let id = match self.series_beginning_with(&prefix)?.as_slice() {
            [] => return Err(self.unknown(id_or_prefix)),
            [id] => *id,
            matches => {
                let (given, matches) = (id_or_prefix.to_owned(), matches.to_vec());
                return Err(FindError::Ambiguous { given, matches });
            }
        };
        let sql = "SELECT id, json FROM records WHERE instr(json, ?1) > 0 ORDER BY started_at, id";
        let mut statement = self.connection.prepare(sql).map_err(|e| self.unread(e))?;
        let mark = format!("{MARK}{}", id.hyphenated());
        let mut rows = statement.query([mark]).map_err(|e| self.unread(e))?;
        while let Some(row) = rows.next().map_err(|e| self.unread(e))? {
            let text = |column| row.get::<_, String>(column).map_err(|e| self.unread(e));
            let (id, json) = (text(0)?, text(1)?);
            take(serde_json::from_str(&json).map_err(|e| self.unreadable(&id, &e))?);
        }
        Ok(id)
    }

    /// At most a handful, as for records.
    fn series_beginning_with(&self, prefix: &str) -> Result<Vec<Uuid>, FindError> {
        let sql = "SELECT DISTINCT substr(json, instr(json, ?1) + length(?1), 36) FROM records
                   WHERE instr(json, ?1 || ?2) > 0 LIMIT 4";
        let mut statement = self.connection.prepare(sql).map_err(|e| self.unread(e))?;
        let rows = statement
            .query_map(params![MARK, prefix], |row| row.get::<_, String>(0))
            .map_err(|e| self.unread(e))?;
        rows.map(|row| self.uuid(&row.map_err(|e| self.unread(e))?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::{SeriesKind, SeriesPoint};

    use super::*;
    use crate::sample::record;

    fn point(series: u128, index: u64) -> SeriesPoint {
        let id = Uuid::from_u128(series);
        SeriesPoint {
            id,
            kind: SeriesKind::Scan,
            index,
            planned: 3,
            point: [("length".into(), "64 B".into())].into(),
        }
    }

    #[test]
    fn a_series_is_read_by_the_beginning_of_its_id_and_nothing_else_is() {
        const ONE: u128 = 0x019a_2b3c_4d5e_7f60_8123_4567_89ab_cdef;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).unwrap();
        let places = [None, Some(point(ONE, 0)), Some(point(ONE + 1, 0)), Some(point(ONE, 1))];
        for (n, series) in places.into_iter().enumerate() {
            let mut record = record(n as u64);
            record.label = Some(format!("\"series\":{{\"id\":\"{}", Uuid::from_u128(ONE)));
            record.series = series;
            store.save(&record).unwrap();
        }
        let mut found = Vec::new();
        let id = store
            .records_of_series(&Uuid::from_u128(ONE).to_string(), &mut |record| found.push(record))
            .unwrap();
        assert_eq!(id.as_u128(), ONE);
        assert_eq!(found.iter().map(|r| r.series.as_ref().unwrap().index).collect::<Vec<_>>(), [0, 1]);
        let fails = |given: &str| store.records_of_series(given, &mut |_| ()).unwrap_err();
        assert!(matches!(fails("019a2b3c"), FindError::Ambiguous { ref matches, .. } if matches.len() == 2));
        assert!(matches!(fails("019a2b3d"), FindError::Unknown { .. }));
        assert!(matches!(fails("x"), FindError::NotAnId { .. }));
    }
}

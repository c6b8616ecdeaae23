//! Who set a rate, with the evidence below.

use std::io;

use netaware_record::{Limit, Side, VersionResult};

use super::Sheet;

/// A row of verdicts, then each distinct piece of evidence once. `limits` yields what stands before
/// the evidence and the limit, for every result of a version.
pub(super) fn rows<'v>(
    sheet: &mut Sheet<'v>,
    label: &str,
    limits: impl Fn(&'v VersionResult) -> Vec<(String, &'v Limit)>,
) -> io::Result<()> {
    let versions: Vec<&'v VersionResult> = sheet.versions.to_vec();
    let cell = |v: &'v VersionResult| {
        let names: Vec<&str> = limits(v).iter().map(|(_, limit)| limit.name()).collect();
        let same = names.windows(2).all(|pair| pair[0] == pair[1]);
        let shown = if same { names.first().map(|name| (*name).to_owned()) } else { Some(names.join(" / ")) };
        shown.filter(|text| !text.is_empty())
    };
    let cells: Vec<_> = versions.iter().map(|v| cell(v)).collect();
    let by_host: Vec<bool> =
        versions.iter().map(|v| limits(v).iter().any(|(_, limit)| limit.side == Side::Host)).collect();
    let paint = sheet.paint;
    sheet.table.painted_row(label, &cells, |column, text| {
        if by_host.get(column) == Some(&true) { paint.caution(text) } else { text.to_owned() }
    })?;
    let all: Vec<(String, &Limit)> = versions.iter().flat_map(|v| limits(v)).collect();
    for (evidence, whom) in by_evidence(&all) {
        let everybody = whom.len() == all.len();
        let lead = if everybody { "because".to_owned() } else { whom.join("; ") };
        sheet.table.remark("", &format!("{lead}: {evidence}"))?;
    }
    Ok(())
}

/// Each evidence once, with those whom it concerns.
fn by_evidence(all: &[(String, &Limit)]) -> Vec<(String, Vec<String>)> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for (who, limit) in all.iter().filter(|(_, limit)| !limit.evidence.is_empty()) {
        match said.iter_mut().find(|(evidence, _)| *evidence == limit.evidence) {
            Some((_, whom)) => whom.push(who.clone()),
            None => said.push((limit.evidence.clone(), vec![who.clone()])),
        }
    }
    said
}

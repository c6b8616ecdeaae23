//! What a host can measure: where the timings come from, what they are, what the system tells, and
//! last the rates that follow, because the end is what stays on a screen.

mod facts;
mod sheet;
mod timings;

use std::io::{self, Write};

use netaware_record::{Effort, Fact, HostAbility, Record};
use netaware_units::Span;

use super::{Detail, closing, header};
use crate::render::paint::Paint;
use crate::render::paragraph;
use sheet::Sheet;

pub(super) fn write(
    out: &mut dyn Write,
    record: &Record,
    ability: &HostAbility,
    detail: Detail,
    paint: Paint,
) -> io::Result<()> {
    writeln!(out, "{}", paint.heading(&header::title(record)))?;
    writeln!(out, "{}", paragraph("  host     ", &header::host(&record.prober)))?;
    writeln!(out, "{}", paragraph("  timings  ", &origin(ability)))?;
    if let Some(label) = &record.label {
        writeln!(out, "{}", paragraph("  label    ", label))?;
    }
    let mut sheet = Sheet::new(out, paint, detail == Detail::Full);
    timings::write(&mut sheet, ability)?;
    facts::write(&mut sheet, ability)?;
    honest(&mut sheet, ability)?;
    privileged(&mut sheet)?;
    closing::write(out, record, paint)
}

fn origin(ability: &HostAbility) -> String {
    let (origin, timings) = (&ability.origin, &ability.timings);
    let effort = if timings.effort == Effort::Quick { "quick" } else { "full" };
    let how = format!("{effort}, {}", timings.took);
    match (&origin.cache, origin.cached) {
        (Some(path), true) => format!(
            "measured {} ago, {} ({how}), kept in {path}; --refresh measures anew",
            rough(origin.age),
            origin.measured_at_utc
        ),
        (Some(path), false) => format!("measured now ({how}), kept in {path}"),
        (None, _) => format!("measured now ({how}), not kept"),
    }
}

/// "40 s", "12 min", "3 h", "5 days".
fn rough(span: Span) -> String {
    let seconds = span.or_zero().nanos() / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// One line per way, one column per packet size; below it what limits packets of 1500 bytes, or
/// every size.
fn honest(sheet: &mut Sheet<'_>, ability: &HostAbility) -> io::Result<()> {
    let rows = &ability.honest;
    let Some(first) = rows.first() else {
        sheet.section("HIGHEST HONEST RATES", &[])?;
        return sheet.text("rates", "not known: nothing that would limit them could be measured");
    };
    let mut sizes: Vec<u32> = rows.iter().map(|row| row.packet).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let names: Vec<String> = sizes.iter().map(|size| format!("{size} B")).collect();
    sheet.section(&format!("HIGHEST RATES, {} % ERROR", first.error * 100.0), &names)?;
    // Rows of one way follow each other.
    for of_way in rows.chunk_by(|one, next| one.way == next.way) {
        let cell = |size: &u32| of_way.iter().find(|row| row.packet == *size).map(|row| row.rate.to_string());
        let methods = of_way.first().map(|row| row.methods.join(", ")).unwrap_or_default();
        sheet.columns(&methods, &sizes.iter().map(cell).collect::<Vec<_>>())?;
        let shown = of_way.iter().filter(|row| sheet.is_full() || row.packet == USUAL);
        for row in shown.collect::<Vec<_>>() {
            let limit = &row.limited_by;
            sheet.remark(&format!("{} B, {}: {}", row.packet, limit.by, limit.because))?;
            if sheet.is_full() {
                for above in &row.above {
                    sheet.remark(&format!("  {} by {}: {}", above.rate, above.by, above.because))?;
                }
            }
        }
    }
    let through = match (&ability.through, ability.facts.interfaces.len()) {
        (Some(name), _) => {
            format!("Rates are of whole IP packets. Link and coalescing of {name} are among the limits.")
        }
        (None, 0) => {
            "Rates are of whole IP packets. No interface's link or coalescing is among the limits.".to_owned()
        }
        (None, _) => {
            "Rates are of whole IP packets. --interface NAME counts that one's link and coalescing too."
                .to_owned()
        }
    };
    sheet.remark(&through)
}

fn privileged(sheet: &mut Sheet<'_>) -> io::Result<()> {
    let wanting = std::mem::take(&mut sheet.privileged);
    if wanting.is_empty() {
        return Ok(());
    }
    sheet.remark(&format!("With more privilege netaware would also know: {}.", wanting.join(", ")))
}

/// The value, or that it is not known and why.
fn shown<T>(fact: &Fact<T>, show: impl FnOnce(&T) -> String) -> String {
    match fact {
        Fact::Known(value) => show(value),
        Fact::NotKnown(why) => format!("not known: {}", why.not_known),
    }
}

/// Packets of most links, bytes.
const USUAL: u32 = 1500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    fn page(of: &Record) -> String {
        let mut out = Vec::new();
        let ability = of.ability.as_ref().unwrap();
        write(&mut out, of, ability, Detail::Overview, Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ages_are_rough() {
        let rows =
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days"), (-5, "0 s")];
        for (seconds, want) in rows {
            assert_eq!(rough(Span::from_secs(seconds)), want);
        }
    }

    #[test]
    fn where_timings_come_from_is_told() {
        let mut record = fixture::host_ability();
        let told = |record: &Record| page(record).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told(&record).contains("kept in /home/a/.cache/netaware/host.json; --refresh measures anew"));
        record.ability.as_mut().unwrap().origin.cached = false;
        assert!(told(&record).contains("measured now (full, 6.12 s), kept in /home/a"));
        record.ability.as_mut().unwrap().origin.cache = None;
        assert!(told(&record).contains("measured now (full, 6.12 s), not kept"));
    }

    #[test]
    fn what_is_not_known_has_its_reason_and_what_needs_privilege_is_gathered() {
        let text = page(&fixture::host_ability());
        assert!(text.contains("not known: the driver does not tell"), "{text}");
        assert!(text.contains("With more privilege netaware would also know: eth0 moderation."), "{text}");
    }

    #[test]
    fn a_host_of_which_nothing_could_be_measured_says_so() {
        let mut record = fixture::host_ability();
        let ability = record.ability.as_mut().unwrap();
        ability.honest.clear();
        ability.timings.calls.clear();
        ability.timings.waits.clear();
        ability.timings.loopback.clear();
        assert!(page(&record).contains("not known: nothing that would limit them could be measured"));
    }
}

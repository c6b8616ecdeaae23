//! What a host answered, a row per protocol and IP version.

use std::io::{self, Write};

use netaware_record::{
    QueuedWay, RateBound, ReachCapacity, ReachQueue, ReachQueues, ReachResult, VersionResult,
};
use netaware_units::{BitRate, Span};

use super::pedigree::{Sender, faults_alone};
use crate::render::figures::{NONE, percent};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

/// Columns of the protocol and of the figures; 78 in all.
const LABEL: usize = 20;
const FIGURES: [usize; 6] = [11, 7, 10, 10, 10, 10];
const HEADINGS: [&str; 6] = ["answered", "loss", "min RTT", "median", "p95", "max"];

/// Writes what every version has.
pub(super) fn write(out: &mut dyn Write, versions: &[&VersionResult], paint: Paint) -> io::Result<()> {
    for version in versions.iter().filter(|version| !version.reach_probes.is_empty()) {
        let mut heading = padded(&format!("REACH {}", version.version.name()), LABEL);
        heading.extend(HEADINGS.iter().zip(FIGURES).map(|(name, width)| right(name, width)));
        writeln!(out, "\n{}", paint.heading(&heading))?;
        for result in &version.reach_probes {
            row(out, result, paint)?;
        }
        // One instrument asked them all.
        let faults = version
            .reach_probes
            .first()
            .map(|result| faults_alone(&result.health, Sender::ThisHost))
            .unwrap_or_default();
        if !faults.is_empty() {
            writeln!(out, "{}", paint.faint(&paragraph("  instrument: ", &faults)))?;
        }
    }
    Ok(())
}

fn row(out: &mut dyn Write, result: &ReachResult, paint: Paint) -> io::Result<()> {
    let port = result.port.map(|port| format!(" {port}")).unwrap_or_default();
    let mut line = padded(&format!("  {}{port}", result.protocol.name()), LABEL);
    line.extend(figures(result).iter().zip(FIGURES).map(|(text, width)| right(text, width)));
    writeln!(out, "{}", line.trim_end())?;
    for text in sentences(result) {
        writeln!(out, "{}", paint.faint(&paragraph("      ", &text)))?;
    }
    Ok(())
}

fn figures(result: &ReachResult) -> [String; 6] {
    let time = |of: Option<Span>| of.map_or_else(|| NONE.to_owned(), |span| span.to_string());
    let rtt = result.rtt.as_ref();
    [
        format!("{}/{}", result.answered, result.asked),
        result.loss.map_or_else(|| NONE.to_owned(), |loss| percent(loss).replace(' ', "")),
        time(rtt.map(|rtt| rtt.min)),
        time(rtt.map(|rtt| rtt.p50)),
        time(rtt.map(|rtt| rtt.p95)),
        time(rtt.map(|rtt| rtt.max)),
    ]
}

fn sentences(result: &ReachResult) -> Vec<String> {
    let mut all = Vec::new();
    let words: Vec<String> = result.answers.iter().map(|word| word.replace('_', " ")).collect();
    if !words.is_empty() {
        all.push(format!("answers: {}", words.join(", ")));
    }
    if !result.others.is_empty() {
        all.push(format!("answered by others: {}", result.others.join(", ")));
    }
    if let Some(by) = result.by_direction.filter(|by| by.forward + by.reverse > 0) {
        all.push(format!("lost there {}, lost back {}, of {} in bursts", by.forward, by.reverse, by.of));
    }
    all.extend(result.capacity.as_ref().map(capacity));
    all.extend(result.queues.as_ref().map(queues));
    all.extend(result.remarks.iter().cloned());
    all
}

fn capacity(of: &ReachCapacity) -> String {
    let bits = |rate: f64| BitRate(rate.max(0.0) as u64);
    let rate = match of.bound {
        RateBound::None => {
            format!("{} ({} .. {})", bits(of.rate.estimate), bits(of.rate.lo), bits(of.rate.hi))
        }
        RateBound::AtLeast => format!("at least {}", bits(of.rate.lo)),
        RateBound::AtMost => format!("at most {}", bits(of.rate.hi)),
    };
    format!("narrowest link there and back, roughly: {rate}, {} pairs of {} B", of.pairs, of.packet)
}

fn queues(of: &ReachQueues) -> String {
    let way = match of.queued {
        QueuedWay::Forward => "queues on the way there",
        QueuedWay::Reverse => "queues on the way back",
        QueuedWay::Both => "queues on both ways",
        QueuedWay::Neither => "no queue either way that its clock can show",
    };
    let ms = |span: Span| span.nanos() / 1_000_000;
    let size = |of: ReachQueue| format!("{} / {} / {}", ms(of.median), ms(of.p90), ms(of.max));
    let (there, back, step) = (size(of.forward), size(of.reverse), ms(of.resolution));
    format!("{way}: median / p90 / max there {there}, back {back} ms, in steps of {step} ms")
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

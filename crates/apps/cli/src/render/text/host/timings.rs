//! Clock, waits, calls, memory and loopback.

use std::io;

use netaware_record::{CallTiming, HostAbility, HostCall, LoopbackMaximum, WaitTiming};
use netaware_units::Span;

use super::sheet::Sheet;
use super::shown;
use crate::render::figures::{count, percent, significant};
use crate::render::time_unit;

pub(super) fn write(sheet: &mut Sheet<'_>, ability: &HostAbility) -> io::Result<()> {
    clock(sheet, ability)?;
    waits(sheet, &ability.timings.waits)?;
    calls(sheet, &ability.timings.calls)?;
    stamps(sheet, ability)?;
    loopback(sheet, &ability.timings.loopback)
}

fn clock(sheet: &mut Sheet<'_>, ability: &HostAbility) -> io::Result<()> {
    let (facts, timing) = (&ability.facts, &ability.timings.clock);
    sheet.section("CLOCK", &[])?;
    let source = shown(&facts.clock_source, Clone::clone);
    let others: Vec<&str> =
        facts.clock_sources.iter().map(String::as_str).filter(|name| *name != source).collect();
    let others =
        if others.is_empty() { String::new() } else { format!(" (there is {} too)", others.join(", ")) };
    sheet.text("source", &format!("{source}{others}"))?;
    sheet.text("one reading", &time(timing.read_ns))?;
    let claimed = if timing.claimed > Span::ZERO {
        format!("; the system claims {}", timing.claimed)
    } else {
        String::new()
    };
    sheet.text("tells apart", &format!("{}{claimed}", timing.resolution))
}

fn waits(sheet: &mut Sheet<'_>, waits: &[WaitTiming]) -> io::Result<()> {
    if waits.is_empty() {
        return Ok(());
    }
    sheet.section("HOW LATE WAITS END", &["mean", "sd", "p99", "max"].map(str::to_owned))?;
    for wait in waits {
        let cells = [time(wait.mean_ns), time(wait.sd_ns), wait.p99.to_string(), wait.max.to_string()];
        sheet.columns(&format!("{} {}", wait.how.name(), whole(wait.asked)), &cells.map(Some))?;
    }
    Ok(())
}

/// Costs per datagram by IP packet over IPv4.
fn calls(sheet: &mut Sheet<'_>, calls: &[CallTiming]) -> io::Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let mut sizes: Vec<u32> = calls.iter().map(|call| call.payload).filter(|payload| *payload > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let names: Vec<String> = sizes.iter().map(|size| format!("{} B", size + IPV4_UDP)).collect();
    sheet.section("CALLS, BY IP PACKET", &names)?;
    let mut done: Vec<HostCall> = Vec::new();
    for call in calls {
        if done.contains(&call.call) {
            continue;
        }
        done.push(call.call);
        let of_size = |size: u32| calls.iter().find(|it| it.call == call.call && it.payload == size);
        let batch = calls.iter().filter(|it| it.call == call.call).map(|it| it.batch).max().unwrap_or(1);
        let batch = if batch > 1 { format!(", {batch} at once") } else { String::new() };
        let label = format!("{}{batch}", call.call.name());
        if call.payload == 0 {
            sheet.columns(&label, &[Some(time(call.median_ns))])?;
        } else {
            let cell = |size: &u32| of_size(*size).map(|it| time(it.median_ns));
            sheet.columns(&label, &sizes.iter().map(cell).collect::<Vec<_>>())?;
        }
        if sheet.is_full() {
            let tails: Vec<String> = calls
                .iter()
                .filter(|it| it.call == call.call)
                .map(|it| format!("{} of {}", time(it.p99_ns), count(it.samples)))
                .collect();
            sheet.remark(&format!("99th percentile: {}", tails.join(", ")))?;
        }
    }
    Ok(())
}

fn stamps(sheet: &mut Sheet<'_>, ability: &HostAbility) -> io::Result<()> {
    let timings = &ability.timings;
    sheet.section("AS AN INSTRUMENT", &[])?;
    sheet.fact("", "stamps", &timings.stamps, |stamps| {
        let by = if stamps.by_kernel { "the kernel's" } else { "the program's: the system gives none" };
        format!("{by}, wrong by {} each (standard error)", stamps.error)
    })?;
    if let Some(stamps) = timings.stamps.known() {
        sheet.text("back to back", &format!("a packet of 1428 B every {}", stamps.send_gap))?;
    }
    sheet.fact("", "receive buffer", &timings.receive_room, |room| {
        format!("holds {room} of payload in datagrams of 1472 B")
    })?;
    sheet.fact("", "copying memory", &timings.memory_copy_ns_per_byte, |ns| {
        format!("{} ns per byte, {} GB/s", significant(*ns), significant(1.0 / ns))
    })?;
    let load = shown(&timings.load_before, |load| percent(*load));
    let steal = shown(&timings.steal, |steal| percent(*steal));
    sheet
        .text("meanwhile", &format!("load before it began {load}; CPU time withheld by a hypervisor {steal}"))
}

fn loopback(sheet: &mut Sheet<'_>, runs: &[LoopbackMaximum]) -> io::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    sheet.section("MOST OVER LOOPBACK", &["cores", "packets/s", "rate", "lost"].map(str::to_owned))?;
    for run in runs {
        let size =
            if run.packets_per_second.is_some() { format!(" {} B", run.payload) } else { String::new() };
        let cells = [
            Some(run.cores.to_string()),
            run.packets_per_second.map(|rate| count(rate as u64)),
            Some(run.rate.to_string()),
            run.lost.map(percent),
        ];
        sheet.columns(&format!("{}{size}", run.how.name()), &cells)?;
    }
    sheet.remark(
        "The maximum network system throughput: payload that came, with no network in between. On one core both ends share it.",
    )
}

/// Three digits of a time in ns.
fn time(ns: f64) -> String {
    let (unit, scale) = time_unit(ns);
    format!("{} {unit}", significant(ns / scale))
}

/// "100 us", "1 ms": what was asked for has no decimals.
fn whole(span: Span) -> String {
    let (unit, scale) = time_unit(span.nanos() as f64);
    format!("{:.0} {unit}", span.nanos() as f64 / scale)
}

/// Headers, bytes.
const IPV4_UDP: u32 = 28;

//! What the system tells of itself: the wall clock, buffers, interfaces.

use std::fmt::Write as _;
use std::io;

use netaware_record::{
    BufferRange, ClockSteering, Fact, HardwareClock, HostAbility, InterfaceFacts, InterruptLine, Moderation,
    SocketBuffers, Timestamping,
};
use netaware_units::{BitRate, ByteCount, Span};

use super::sheet::Sheet;
use super::shown;
use crate::render::figures::{count, percent};

pub(super) fn write(sheet: &mut Sheet<'_>, ability: &HostAbility) -> io::Result<()> {
    let facts = &ability.facts;
    sheet.section("SYSTEM", &[])?;
    sheet.fact("", "wall clock", &facts.steering, steering)?;
    sheet.fact("", "clocks of cards", &facts.hardware_clocks, |clocks| {
        clocks.iter().map(hardware_clock).collect::<Vec<_>>().join("; ")
    })?;
    for clock in facts.hardware_clocks.known().into_iter().flatten() {
        if clock.ahead.why().is_some_and(|why| why.needs_privilege) {
            sheet.privileged.push(format!("how far {} is from the wall clock", clock.device));
        }
    }
    let virtualisation = &ability.origin.fingerprint.virtualisation;
    let machine = if virtualisation.is_empty() { "none found" } else { virtualisation };
    let stolen = shown(&facts.steal_since_boot, |share| percent(*share));
    sheet.text("hypervisor", &format!("{machine}; CPU time withheld since the start {stolen}"))?;
    buffers(sheet, &facts.socket_buffers)?;
    let available = shown(&facts.congestion.available, |names| names.join(", "));
    let default = shown(&facts.congestion.default, Clone::clone);
    sheet.text("congestion", &format!("{default}; loaded {available}"))?;
    if facts.interfaces.is_empty() {
        sheet.section("INTERFACES", &[])?;
        sheet.text("none", "there is only loopback")?;
    }
    facts.interfaces.iter().try_for_each(|one| interface(sheet, one))
}

fn steering(of: &ClockSteering) -> String {
    let errors = format!("error believed {}, at most {}", of.estimated_error, of.maximum_error);
    let rate = format!("rate bent by {:.1} ppm", of.frequency_ppb as f64 / 1000.0);
    if of.synchronised {
        format!("synchronised (NTP or PTP), {errors}, {rate}")
    } else {
        format!("not synchronised: nobody has told the kernel that it is right; {rate}")
    }
}

fn hardware_clock(of: &HardwareClock) -> String {
    let ahead = shown(&of.ahead, |ahead| format!("{ahead} ahead of the wall clock"));
    let error = of.error.known().map(|error| format!(", +-{error}")).unwrap_or_default();
    format!("{} ({}): {ahead}{error}", of.device, of.name)
}

fn buffers(sheet: &mut Sheet<'_>, of: &SocketBuffers) -> io::Result<()> {
    let size = |fact: &Fact<ByteCount>| shown(fact, ByteCount::to_string);
    sheet.text(
        "UDP buffers",
        &format!(
            "receive {}, at most {}; send {}, at most {}",
            size(&of.receive_default),
            size(&of.receive_max),
            size(&of.send_default),
            size(&of.send_max)
        ),
    )?;
    let range = |range: &BufferRange| format!("{} to {}", range.min, range.max);
    sheet.text(
        "TCP buffers",
        &format!("receive {}; send {}", shown(&of.tcp_receive, range), shown(&of.tcp_send, range)),
    )
}

fn interface(sheet: &mut Sheet<'_>, of: &InterfaceFacts) -> io::Result<()> {
    let name = &of.name;
    let clean = netaware_record::printable(name);
    sheet.section(&format!("INTERFACE {clean}"), &[])?;
    let driver = shown(&of.driver, Clone::clone);
    let software = if of.hardware { "" } else { ", no hardware behind it" };
    sheet.text("driver", &format!("{driver}{software}, MTU {}", shown(&of.mtu, u32::to_string)))?;
    sheet.fact(name, "link", &of.link, BitRate::to_string)?;
    sheet.fact(name, "offloads", &of.offloads, |names| {
        if names.is_empty() { "none active".to_owned() } else { names.join(", ") }
    })?;
    sheet.fact(name, "rings", &of.rings, |rings| {
        format!(
            "{} of {} packets receiving, {} of {} sending",
            rings.receive, rings.receive_max, rings.send, rings.send_max
        )
    })?;
    sheet.fact(name, "moderation", &of.moderation, moderation)?;
    sheet.fact(name, "seen of it", &of.observed_period, |period| {
        format!("handed over every {period} at most")
    })?;
    sheet.fact(name, "queues", &of.queues, |queues| {
        format!("{} both ways, {} receiving, {} sending", queues.combined, queues.receive, queues.send)
    })?;
    let is_full = sheet.is_full();
    sheet.fact(name, "interrupts", &of.interrupts, |lines| interrupts(lines, is_full))?;
    sheet.fact(name, "queueing", &of.queueing, |kinds| tallied(kinds))?;
    sheet.fact(name, "stamps", &of.timestamping, timestamping)
}

fn moderation(of: &Moderation) -> String {
    let rule = |wait: Span, packets: u32| match (wait.nanos(), packets) {
        (0, 0 | 1) => "at once".to_owned(),
        (0, packets) => format!("after {packets} packets"),
        (_, 0) => format!("after {wait}"),
        (_, packets) => format!("after {wait} or {packets} packets"),
    };
    let adaptive = if of.adaptive { ", adapted to the load" } else { "" };
    format!(
        "receiving {}{adaptive}; sending {}",
        rule(of.receive_wait, of.receive_packets),
        rule(of.send_wait, of.send_packets)
    )
}

/// All of them, or those that were raised most.
fn interrupts(lines: &[InterruptLine], is_full: bool) -> String {
    let mut most: Vec<&InterruptLine> = lines.iter().collect();
    most.sort_by_key(|line| std::cmp::Reverse(line.count));
    let shown_lines = if is_full { most.len() } else { most.len().min(FEW) };
    let one = |line: &&InterruptLine| {
        format!(
            "{} ({}) to core {}, {} times",
            line.number,
            line.name,
            shown(&line.cores, Clone::clone),
            count(line.count)
        )
    };
    let mut text = most.iter().take(shown_lines).map(one).collect::<Vec<_>>().join("; ");
    if most.len() > shown_lines {
        let _ = write!(text, "; and {} more (-v)", most.len() - shown_lines);
    }
    text
}

/// "mq, 8 x fq_codel".
fn tallied(kinds: &[String]) -> String {
    let mut tally: Vec<(&str, usize)> = Vec::new();
    for kind in kinds {
        match tally.iter_mut().find(|(known, _)| known == kind) {
            Some((_, times)) => *times += 1,
            None => tally.push((kind, 1)),
        }
    }
    let one = |(kind, times): &(&str, usize)| {
        if *times > 1 { format!("{times} x {kind}") } else { (*kind).to_owned() }
    };
    tally.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn timestamping(of: &Timestamping) -> String {
    let by = |what: &str, kernel: bool, card: bool| match (kernel, card) {
        (true, true) => format!("{what} by kernel and card"),
        (true, false) => format!("{what} by the kernel"),
        (false, true) => format!("{what} by the card"),
        (false, false) => format!("{what} by nobody"),
    };
    let clock = of.clock.map(|number| format!(", clock /dev/ptp{number}")).unwrap_or_default();
    format!(
        "{}, {}{clock}",
        by("arrivals", of.receive_kernel, of.receive_card),
        by("departures", of.send_kernel, of.send_card)
    )
}

/// Interrupts of an overview.
const FEW: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moderation_reads_as_a_rule() {
        let of = |micros, packets, adaptive| {
            moderation(&Moderation {
                receive_wait: Span::from_micros(micros),
                receive_packets: packets,
                send_wait: Span::ZERO,
                send_packets: 0,
                adaptive,
            })
        };
        assert_eq!(of(0, 1, false), "receiving at once; sending at once");
        assert_eq!(of(50, 0, true), "receiving after 50.0 us, adapted to the load; sending at once");
        assert_eq!(of(0, 64, false), "receiving after 64 packets; sending at once");
        assert_eq!(of(50, 64, false), "receiving after 50.0 us or 64 packets; sending at once");
    }

    #[test]
    fn disciplines_are_tallied_in_their_order() {
        let kinds = ["mq", "fq", "fq", "pfifo_fast"].map(str::to_owned);
        assert_eq!(tallied(&kinds), "mq, 2 x fq, pfifo_fast");
        assert_eq!(tallied(&[]), "");
    }

    #[test]
    fn a_clock_that_nobody_vouches_for_is_not_synchronised() {
        let of = |synchronised| {
            steering(&ClockSteering {
                synchronised,
                estimated_error: Span::from_micros(250),
                maximum_error: Span::from_millis(12),
                frequency_ppb: -12_340,
            })
        };
        assert_eq!(
            of(true),
            "synchronised (NTP or PTP), error believed 250 us, at most 12.0 ms, rate bent by -12.3 ppm"
        );
        assert!(of(false).starts_with("not synchronised"));
    }
}

//! A transfer's times, blocks and buffers, and its RFC 6349 figures.

use std::io;

use netaware_record::{SpacedBlocks, TcpBlocks, TcpResult, VersionResult};
use netaware_units::{BitRate, Span};

use super::Sheet;
use crate::render::figures::{count, nanos, percent};

/// `of` picks the result that a version shows.
pub(super) fn rows(
    sheet: &mut Sheet<'_>,
    of: &dyn Fn(&VersionResult) -> Option<TcpResult>,
) -> io::Result<()> {
    times(sheet, of)?;
    blocks(sheet, of)?;
    sheet.row("buffers asked for", |v| of(v)?.window_asked.map(|asked| asked.to_string()))?;
    sheet.row("buffers, send / receive", |v| {
        let result = of(v)?;
        let sent_from = result.sender.as_ref()?.streams.first()?.send_buffer?;
        let read_into = result.receiver.as_ref()?.streams.first()?.receive_buffer?;
        Some(format!("{sent_from} / {read_into}"))
    })?;
    rfc6349(sheet, of)
}

fn times(sheet: &mut Sheet<'_>, of: &dyn Fn(&VersionResult) -> Option<TcpResult>) -> io::Result<()> {
    let shown = |time: Option<Span>, rate: Option<BitRate>| {
        time.map(|time| rate.map_or_else(|| time.to_string(), |rate| format!("{time}, {rate}")))
    };
    sheet.row("given to the stack", |v| of(v)?.times.and_then(|t| shown(t.given, t.given_rate)))?;
    sheet.row("acknowledged", |v| of(v)?.times.and_then(|t| shown(t.acknowledged, t.acknowledged_rate)))?;
    sheet.row("read by the receiver", |v| of(v)?.times.and_then(|t| shown(t.received, t.received_rate)))
}

fn blocks(sheet: &mut Sheet<'_>, of: &dyn Fn(&VersionResult) -> Option<TcpResult>) -> io::Result<()> {
    let blocks = |v: &VersionResult| of(v)?.blocks;
    sheet.row("blocks given", |v| blocks(v).map(|blocks| how_many(&blocks)))?;
    sheet.row("time per block", |v| blocks(v)?.each_ns.map(nanos))?;
    sheet.row("block spacing", |v| {
        let blocks = blocks(v)?;
        Some(how_kept(blocks.spacing?, &blocks.kept?))
    })
}

fn how_many(blocks: &TcpBlocks) -> String {
    let missing = blocks.asked.filter(|asked| *asked > blocks.written);
    let of = missing.map(|asked| format!(" of {}", count(asked))).unwrap_or_default();
    format!("{}{of}, {} each", count(blocks.written), blocks.length)
}

fn how_kept(spacing: Span, kept: &SpacedBlocks) -> String {
    let mut words = vec![spacing.to_string()];
    if kept.late > 0 {
        words.push(format!("{} late, worst {}", count(kept.late), kept.worst_lateness));
    }
    if kept.slipped > Span::ZERO {
        words.push(format!("put off by {}", kept.slipped));
    }
    if kept.waits > 0 {
        words.push(format!("{} waited for room, {}", count(kept.waits), kept.waited));
    }
    words.join(", ")
}

fn rfc6349(sheet: &mut Sheet<'_>, of: &dyn Fn(&VersionResult) -> Option<TcpResult>) -> io::Result<()> {
    let figures = |v: &VersionResult| of(v)?.rfc6349;
    sheet.row("transfer time ratio", |v| {
        let figures = figures(v)?;
        let ideal = figures.ideal_rate.map(|rate| format!(", ideal {rate}")).unwrap_or_default();
        figures.transfer_time_ratio.map(|ratio| format!("{ratio:.3}{ideal}"))
    })?;
    // Its interesting part is what it lacks to 100 %, so it has more decimals than other shares.
    sheet.row("TCP efficiency", |v| figures(v)?.efficiency.map(|share| format!("{:.3} %", share * 100.0)))?;
    sheet.row("buffer delay", |v| {
        let figures = figures(v)?;
        let baseline = figures.baseline_rtt.map(|rtt| format!(" of {rtt}")).unwrap_or_default();
        figures.buffer_delay.map(|share| format!("{}{baseline}", percent(share)))
    })
}

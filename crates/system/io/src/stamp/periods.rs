//! A flow that goes on and is told period by period: the active task of a probe.

use std::net::SocketAddr;

use netaware_probe::stamp::StampEvent;
use netaware_probe::stamp::clock::{relate, tightest};
use netaware_probe::stamp::report::{RowNames, StampLog, Way};
use netaware_record::IpVersion;
use netaware_record::passive::{ClockExchange, DelayRow, Period};
use netaware_units::{Span, Wall};
use netaware_wire::stamp::ErrorEstimate;

use super::{StampOptions, StampRun, StampRunError, run};
use crate::stop::StopFlag;

/// What one period brought.
#[derive(Debug, Clone)]
pub struct StampPeriod {
    /// From when to when packets were sent, by our clock; aligned to the epoch.
    pub period: Period,
    /// The way there and the way back, with the clocks related by this period's own exchanges.
    pub rows: [DelayRow; 2],
    /// The exchanges that say most of both clocks, for who relates them over a longer time.
    pub tightest: Vec<ClockExchange>,
}

/// Who measures whom, and how long a period is.
#[derive(Debug, Clone)]
pub struct StampNames {
    /// This probe.
    pub here: String,
    /// The reflector: a probe's name, or an address.
    pub there: String,
    /// Length of a period.
    pub period: Span,
    /// Both are known to read one clock.
    pub same_clock: bool,
}

/// Sends a flow until it is stopped and hands over each period once its last packet has its
/// verdict, which is up to patience and 2 s after its end. A period without a verdict is not told.
///
/// # Errors
/// As [`run`].
pub fn run_periods(
    to: SocketAddr,
    options: &StampOptions,
    names: &StampNames,
    stop: &StopFlag,
    on_period: &mut dyn FnMut(StampPeriod),
) -> Result<StampRun, StampRunError> {
    let version = IpVersion::of(to.ip());
    let about = RowNames { here: &names.here, there: &names.there, version, patience: options.patience };
    let mut cutter = Cutter {
        about,
        length: names.period.0.max(1),
        error: options.error,
        same: names.same_clock,
        open: None,
    };
    let run = run(to, options, stop, &mut |event| {
        if let Some(period) = cutter.take(&event) {
            on_period(period);
        }
    })?;
    if let Some(period) = cutter.close() {
        on_period(period);
    }
    Ok(run)
}

/// Cuts events, which come in order of sending, into periods.
struct Cutter<'a> {
    about: RowNames<'a>,
    length: i64,
    error: ErrorEstimate,
    same: bool,
    /// Number of the period since the epoch, and what it has.
    open: Option<(i64, StampLog)>,
}

impl Cutter<'_> {
    fn take(&mut self, event: &StampEvent) -> Option<StampPeriod> {
        let number = self.number_of(event);
        let is_later = |(open, _): &(i64, StampLog)| number.is_some_and(|number| number > *open);
        let closed = if self.open.as_ref().is_some_and(is_later) { self.close() } else { None };
        if let Some(number) = number {
            self.open.get_or_insert_with(|| (number, StampLog::default()));
        }
        if let Some((_, log)) = &mut self.open {
            log.observe(event);
        }
        closed
    }

    /// What has no time of its own belongs to the period that is open.
    fn number_of(&self, event: &StampEvent) -> Option<i64> {
        let at = match event {
            StampEvent::Answered(exchange) => exchange.sent_at,
            StampEvent::Lost(run) => run.sent_at,
            _ => return None,
        };
        Some(at.0.div_euclid(self.length))
    }

    fn close(&mut self) -> Option<StampPeriod> {
        let (number, log) = self.open.take()?;
        let relation = relate(log.exchanges(), self.error, self.same);
        let row = |way| log.row(way, relation.as_ref(), &self.about);
        let from = number * self.length;
        Some(StampPeriod {
            period: Period { from: Wall(from), until: Wall(from + self.length) },
            rows: [row(Way::Forward), row(Way::Reverse)],
            tightest: tightest(log.exchanges(), Span(self.length)),
        })
    }
}

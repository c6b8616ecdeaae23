//! What a series is to do: taken from the command line, or from the store to continue one.

use anyhow::{Context, bail, ensure};
use clap::{ArgMatches, Command, CommandFactory};
use netaware_io::clock;
use netaware_record::SeriesKind;
use netaware_store::{SeriesPlan, Store};
use netaware_units::{Mono, Span, Wall};
use uuid::{NoContext, Timestamp, Uuid};

use super::line::{self, Line, Part};
use super::scan::Scan;
use super::slots::Slots;
use crate::cli::Cli;
use crate::config::Parsed;
use crate::measure::Measuring;

/// Where a series stands when it begins or goes on.
pub(super) struct Begun {
    pub(super) plan: SeriesPlan,
    pub(super) line: Line,
    /// The command without values of a point.
    pub(super) base: Box<dyn Measuring>,
    pub(super) course: Course,
    /// Whether it goes on.
    pub(super) is_resumed: bool,
}

/// Which points there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Course {
    Scan(Scan),
    Repeat { every: Span, count: Option<u64> },
}

impl Course {
    fn of(measuring: &dyn Measuring, command: &Command) -> anyhow::Result<Self> {
        let flags = measuring.series();
        let Some(every) = flags.every else {
            return Ok(Self::Scan(Scan::parse(&flags.scan, command).map_err(anyhow::Error::msg)?));
        };
        let count = flags.times.or(flags.lasting.map(|lasting| Slots::within(lasting, every)));
        let most = super::MOST_POINTS;
        ensure!(
            count.is_none_or(|n| n <= most),
            "--for holds more than {most} measurements: take a longer --every"
        );
        Ok(Self::Repeat { every, count })
    }

    fn kind(&self) -> SeriesKind {
        match self {
            Self::Scan(_) => SeriesKind::Scan,
            Self::Repeat { .. } => SeriesKind::Repeat,
        }
    }

    /// Zero without an end.
    fn planned(&self) -> u64 {
        match self {
            Self::Scan(scan) => scan.count(),
            Self::Repeat { count, .. } => count.unwrap_or(0),
        }
    }
}

/// A series as it was typed, checked before anything is measured.
///
/// # Errors
/// Options that contradict each other, or values that their options refuse.
pub(super) fn new(measuring: &dyn Measuring, parsed: &Parsed) -> anyhow::Result<Begun> {
    let frame = measuring.measurement();
    let whole = Cli::command();
    let (command, matches) = leaf(&whole, &parsed.merged)?;
    let course = Course::of(measuring, command)?;
    if let Course::Scan(scan) = &course
        && let Some(name) = scan.names().find(|name| line::has_value(command, matches, name))
    {
        bail!("--{name} is given and scanned: give one of them");
    }
    let words = line::words(command, matches, Part::Plan)?;
    let mut line = Line::new(frame.command, line::words(command, matches, Part::Presentation)?, &words);
    check(&mut line, &course)?;
    let started_at = clock::wall();
    let plan = SeriesPlan {
        id: id_at(started_at),
        kind: course.kind(),
        command: frame.command.to_owned(),
        host: frame.target.host.as_ref().map_or_else(String::new, |host| host.name.clone()),
        label: frame.output.label.clone(),
        planned: course.planned(),
        started_at,
        line: words,
    };
    let base = line.at(&Vec::new())?;
    Ok(Begun { plan, line, base, course, is_resumed: false })
}

/// The series that `--resume` names.
///
/// # Errors
/// There is none, it is another command's, or something was given that the plan decides.
pub(super) fn resumed(
    id: &str,
    measuring: &dyn Measuring,
    store: &Store,
    parsed: &Parsed,
) -> anyhow::Result<Begun> {
    let frame = measuring.measurement();
    let whole = Cli::command();
    let (command, typed) = leaf(&whole, &parsed.typed)?;
    if let Some(name) = line::given(command, typed, Part::Plan).first() {
        bail!("--resume measures what the series was begun with: leave out {name}");
    }
    let plan = store.series(id)?;
    let short = crate::measure::short_id(plan.id);
    if plan.command != frame.command {
        bail!("{short} is a series of 'netaware {0}': netaware {0} --resume {short}", plan.command);
    }
    let (_, merged) = leaf(&whole, &parsed.merged)?;
    let mut line = Line::new(frame.command, line::words(command, merged, Part::Presentation)?, &plan.line);
    let unreadable = || format!("the series {short} cannot be continued by this netaware");
    let base = line.at(&Vec::new()).with_context(unreadable)?;
    let course = Course::of(&*base, command).with_context(unreadable)?;
    Ok(Begun { plan, line, base, course, is_resumed: true })
}

/// When slot 0 was due, on the monotonic clock of now. Between the two clocks of a resumed
/// repetition lies whatever the wall clock was stepped by since it began.
pub(super) fn first_due(plan: &SeriesPlan, is_resumed: bool) -> Mono {
    let now = clock::now();
    if is_resumed { now - clock::wall().since(plan.started_at) } else { now }
}

/// The first point, the last and whatever may go wrong in between, so that a slip shows now and not
/// tonight.
fn check(line: &mut Line, course: &Course) -> anyhow::Result<()> {
    let Course::Scan(scan) = course else { return Ok(()) };
    for point in scan.samples() {
        let command = line.at(&point)?;
        command.check()?;
        command.measurement().target.target(None)?;
    }
    Ok(())
}

fn leaf<'a>(whole: &'a Command, matches: &'a ArgMatches) -> anyhow::Result<(&'a Command, &'a ArgMatches)> {
    let chosen = matches.subcommand().and_then(|(name, of)| Some((whole.find_subcommand(name)?, of)));
    chosen.context("no command was given")
}

/// As records have it: the time comes first, so that ids sort by it.
fn id_at(at: Wall) -> Uuid {
    let since = at.0.max(0).cast_unsigned();
    let nanos = u32::try_from(since % 1_000_000_000).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(NoContext, since / 1_000_000_000, nanos))
}

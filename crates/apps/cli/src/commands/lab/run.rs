//! `netaware lab run`: a lab for as long as one program runs.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, bail};
use clap::Args;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_lab::{
    EmulatorCore, Holding, Lab, LabOptions, Report, Side, await_listener, end_child_sooner, scenarios,
};
use netaware_units::Span;

use super::{PathFlags, Prefix};
use crate::exit::Exit;
use crate::signals::{self, Event};

const LONG: &str = "\
Brings a lab up, runs CMD_B on host b in the background and CMD_A on host a in the foreground, ends CMD_B, takes the lab \
down, and exits as CMD_A did (128 + N after signal N). CMD_A starts as soon as CMD_B listens, or after half a second. What \
CMD_B prints goes to stderr.";

#[derive(Debug, Args)]
#[command(long_about = LONG)]
pub(super) struct Run {
    /// A file, or a name from 'netaware lab scenarios'
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    #[command(flatten)]
    lab: Prefix,
    #[command(flatten)]
    path: PathFlags,
    /// The program for host a; after ':::' the one for host b
    #[arg(value_name = "CMD_A [::: CMD_B]", required = true, last = true)]
    programs: Vec<OsString>,
}

impl Run {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let (near, far) = split(&self.programs)?;
        let loaded = scenarios::load(&self.scenario)?;
        let asked = Asked::default();
        asked.listen()?;
        let reporter = Reporter::start(|report| eprintln!("lab: {report}"))?;
        let options = LabOptions {
            prefix: self.lab.prefix.clone(),
            scenario_name: loaded.name.clone(),
            seed: self.path.seed,
            truth: self.path.truth(),
            holding: Holding::Run,
            core: EmulatorCore::Own,
        };
        let lab = Lab::up(&loaded.scenario, &options)?;
        let mut background = far.map(|far| background(&lab, far)).transpose()?;
        if background.is_some() {
            await_listener(&self.lab.prefix, Side::B, LISTENS_WITHIN);
        }
        let ended = foreground(&lab, near, &asked, &reporter);
        if let Some(child) = &mut background {
            let ended = end_child_sooner(child, PATIENCE, &asked.at_once);
            ended.context("cannot end the program on host b")?;
        }
        let report = lab.end()?;
        reporter.finish();
        tell(&report);
        Ok(ended?.exit())
    }
}

/// How the program on host a ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// By itself, or in the time that it was given for it.
    InTime(ExitStatus),
    /// Somebody did not want to wait for it.
    AtOnce,
}

impl Ended {
    fn exit(&self) -> Exit {
        match self {
            Self::InTime(status) => Exit::Program(code(*status)),
            Self::AtOnce => Exit::NotMeasured,
        }
    }
}

/// Prints how the path does from a thread of its own. Nobody may read what is printed, and the loop
/// that obeys signals must not wait for that.
#[derive(Debug)]
struct Reporter {
    reports: Sender<Report>,
    thread: JoinHandle<()>,
}

impl Reporter {
    fn start(print: impl Fn(Report) + Send + 'static) -> anyhow::Result<Self> {
        let (reports, to_print) = channel();
        let printing = move || to_print.iter().for_each(print);
        let thread = std::thread::Builder::new().name("reports".into()).spawn(printing);
        Ok(Self { reports, thread: thread.context("cannot start a thread for reports")? })
    }

    fn print(&self, report: Report) {
        // A thread that has failed to print changes nothing of what is to be done.
        let _ = self.reports.send(report);
    }

    /// Waits until all is printed.
    fn finish(self) {
        drop(self.reports);
        let _ = self.thread.join();
    }
}

/// What signals ask for.
#[derive(Debug, Default)]
struct Asked {
    /// To end both programs.
    end: StopFlag,
    /// To wait for neither of them any more. The lab is taken down all the same.
    at_once: StopFlag,
    /// To tell how the path does.
    report: Arc<AtomicBool>,
}

impl Asked {
    fn listen(&self) -> anyhow::Result<()> {
        let (end, at_once, report) = (self.end.clone(), self.at_once.clone(), self.report.clone());
        let told = move |event| match event {
            Event::Asked => report.store(true, Ordering::Release),
            Event::Stopping(by) => {
                eprintln!("\nnetaware: {by}: ending the programs; once more ends them at once");
            }
        };
        signals::listen_to_each(move |_| end.raise(), move || at_once.raise(), told)
    }
}

/// Words before and after ":::".
fn split(words: &[OsString]) -> anyhow::Result<(&[OsString], Option<&[OsString]>)> {
    let mut parts = words.split(|word| word == ":::");
    let (near, far) = (parts.next().unwrap_or_default(), parts.next());
    if near.is_empty() || far.is_some_and(<[OsString]>::is_empty) || parts.next().is_some() {
        bail!("programs are given as CMD_A, or as CMD_A ::: CMD_B");
    }
    Ok((near, far))
}

fn on(lab: &Lab, side: Side, words: &[OsString]) -> anyhow::Result<Command> {
    let (program, arguments) = words.split_first().context("there is no program")?;
    let mut command = lab.command(side, program);
    command.args(arguments);
    Ok(command)
}

fn background(lab: &Lab, words: &[OsString]) -> anyhow::Result<Child> {
    let mut command = on(lab, Side::B, words)?;
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    command.spawn().context("cannot start the program on host b")
}

fn foreground(lab: &Lab, words: &[OsString], asked: &Asked, reporter: &Reporter) -> anyhow::Result<Ended> {
    let mut child = on(lab, Side::A, words)?.spawn().context("cannot start the program on host a")?;
    wait(&mut child, asked, || reporter.print(lab.report()))
}

/// What is asked for after it has ended does not change how it ended.
fn wait(child: &mut Child, asked: &Asked, report: impl Fn()) -> anyhow::Result<Ended> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::InTime(status));
        }
        if asked.report.swap(false, Ordering::AcqRel) {
            report();
        }
        if asked.end.is_raised() {
            let ended = end_child_sooner(child, PATIENCE, &asked.at_once);
            let status = ended.context("cannot end the program on host a")?;
            return Ok(if asked.at_once.is_raised() { Ended::AtOnce } else { Ended::InTime(status) });
        }
        clock::sleep(LOOK_EVERY);
    }
}

fn tell(report: &Report) {
    eprintln!("lab: {report}");
    if let Some(why) = report.why_invalid(TRUSTED_LATENESS) {
        eprintln!("warning: do not trust this run: {why}");
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2)
}

const LISTENS_WITHIN: Span = Span::from_millis(500);
const PATIENCE: Span = Span::from_secs(2);
const LOOK_EVERY: Span = Span::from_millis(5);
/// One in a hundred packets later than this shows in figures of methods; see the guide.
const TRUSTED_LATENESS: Span = Span::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_three_colons() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        let both = words("ping b ::: iperf3 -s");
        assert_eq!(split(&both).unwrap(), (&words("ping b")[..], Some(&words("iperf3 -s")[..])));
        assert_eq!(split(&words("ping b")).unwrap().1, None);
        for bad in [":::", "a :::", "::: b", "a ::: b ::: c", ""] {
            assert!(split(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_program_that_has_ended_counts_whatever_signals_come_afterwards() {
        let asked = Asked::default();
        let mut over = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        over.wait().unwrap();
        let mut runs = Command::new("sleep").arg("100").spawn().unwrap();
        asked.end.raise();
        asked.at_once.raise();
        let ended = wait(&mut over, &asked, || ()).unwrap();
        assert_eq!(ended, Ended::InTime(ExitStatus::from_raw(7 << 8)));
        assert_eq!(ended.exit(), Exit::Program(7));
        let ended = wait(&mut runs, &asked, || ()).unwrap();
        assert_eq!(ended, Ended::AtOnce);
        assert_eq!(ended.exit(), Exit::NotMeasured);
    }

    #[test]
    fn a_report_that_nobody_reads_does_not_hold_who_asks_for_it() {
        let (reads, read) = channel::<()>();
        let stuck = move |_| {
            let _ = read.recv();
        };
        let reporter = Reporter::start(stuck).unwrap();
        for _ in 0..1000 {
            reporter.print(Report::default());
        }
        drop(reads);
        reporter.finish();
    }

    #[test]
    fn a_program_that_a_signal_ended_counts_as_in_a_shell() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }
}

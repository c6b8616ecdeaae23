//! The process that `lab up` leaves behind: in a session of its own, without a terminal, until it
//! is told to end.

use std::io::{Read as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::Args;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_lab::{EmulatorCore, Holding, Lab, LabOptions, new_session, scenarios};
use netaware_units::Span;

use super::up::READY;
use super::{PathFlags, Prefix};
use crate::exit::{self, Exit};
use crate::signals::{self, Event};

#[derive(Debug, Args)]
pub(super) struct Hold {
    /// What the scenario on stdin is called
    #[arg(long, value_name = "NAME")]
    name: String,
    #[command(flatten)]
    lab: Prefix,
    #[command(flatten)]
    path: PathFlags,
}

impl Hold {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let stop = StopFlag::new();
        let asked = Arc::new(AtomicBool::new(false));
        let lab = match self.begin(&stop, &asked) {
            Ok(lab) => lab,
            Err(error) => {
                writeln!(std::io::stdout(), "{}", exit::sentence(&error))?;
                return Ok(Exit::NotMeasured);
            }
        };
        // Who started us may have been ended meanwhile: nobody knows of this lab then, so it is not
        // to stay.
        if writeln!(std::io::stdout(), "{READY}").is_err() {
            lab.end()?;
            return Ok(Exit::NotMeasured);
        }
        while !stop.is_raised() {
            clock::sleep(LOOK_EVERY);
            if asked.swap(false, Ordering::AcqRel) {
                lab.write_report()?;
            }
        }
        lab.end_for_others()?;
        Ok(Exit::Done)
    }

    fn begin(&self, stop: &StopFlag, asked: &Arc<AtomicBool>) -> anyhow::Result<Lab> {
        // Only a leader of a process group is refused; it then has a session to itself anyway.
        let _ = new_session();
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the scenario")?;
        let scenario = scenarios::parse(&self.name, text)?.scenario;
        let asked = asked.clone();
        signals::listen(stop, move |event| {
            if event == Event::Asked {
                asked.store(true, Ordering::Release);
            }
        })?;
        let options = LabOptions {
            prefix: self.lab.prefix.clone(),
            scenario_name: self.name.clone(),
            seed: self.path.seed,
            truth: self.path.truth(),
            holding: Holding::Command,
            core: EmulatorCore::Own,
        };
        Ok(Lab::up(&scenario, &options)?)
    }
}

const LOOK_EVERY: Span = Span::from_millis(50);

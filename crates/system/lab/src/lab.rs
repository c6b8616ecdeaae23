//! A lab that this process holds.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use netaware_io::stop::StopFlag;
use netaware_io::{clock, priority, thread};
use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Wall};

use crate::devices::Devices;
use crate::emulator::Emulator;
use crate::keeper::{self, Published, Scribe};
use crate::namespace::{self, HostEnd};
use crate::process::ProcessId;
use crate::stamps::Stamps;
use crate::state::{self, Holding, LabState, Phase};
use crate::truth::{Line, Opening, TruthDetail, TruthFile, TruthTap, TruthWriter};
use crate::{Addresses, LabError, Report, down, permission, system};

/// How a lab is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabOptions {
    /// In front of the names of its namespaces; one lab per prefix.
    pub prefix: String,
    /// What the scenario is called where it is shown; has no influence.
    pub scenario_name: String,
    /// Of the model's randomness: equal seeds and equal packets have equal fates.
    pub seed: u64,
    /// Where the truth is written, if anywhere.
    pub truth: Option<TruthFile>,
    /// Who may end it.
    pub holding: Holding,
    /// Where its emulator runs.
    pub core: EmulatorCore,
}

/// Where an emulator runs, which decides how late it is and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmulatorCore {
    /// On the highest core that no other lab has, where it stays awake while packets move: late by
    /// some microseconds, at the price of that core. If no core is free it runs as
    /// [`Self::Shared`].
    #[default]
    Own,
    /// On any core. It sleeps between packets and is late by a wake-up, so several labs can run
    /// side by side.
    Shared,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            prefix: "lab".to_owned(),
            scenario_name: String::new(),
            seed: 1,
            truth: None,
            holding: Holding::Library,
            core: EmulatorCore::default(),
        }
    }
}

/// Two hosts and the path between them. Dropping it ends every process inside and removes all of
/// it.
#[derive(Debug)]
pub struct Lab {
    state: LabState,
    addresses: Addresses,
    running: Option<Running>,
}

struct Running {
    epoch: Mono,
    stop: StopFlag,
    threads: [JoinHandle<()>; 2],
    published: Published,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Lab {
    /// Makes both hosts and starts the path between them. What a killed program left of a lab that
    /// was for itself alone is removed first.
    ///
    /// # Errors
    /// See [`LabError`]. Whatever was made until then is removed again.
    pub fn up(scenario: &Scenario, options: &LabOptions) -> Result<Self, LabError> {
        state::check_prefix(&options.prefix)?;
        permission::check()?;
        let prefix = options.prefix.clone();
        down::clear_orphan(&prefix)?;
        if state::is_claimed(&prefix) {
            return Err(LabError::AlreadyThere { prefix });
        }
        for side in SIDES {
            namespace::check_free(&namespace::name(&prefix, side))?;
        }
        let truth = options.truth.as_ref().map(|file| TruthWriter::create(&file.path)).transpose()?;
        state::claim(&prefix)?;
        // From here on dropping it removes what there is.
        let mut lab = Self {
            state: new_state(scenario, options),
            addresses: Addresses::new(scenario.hops.len()),
            running: None,
        };
        lab.make(scenario, options, truth)?;
        Ok(lab)
    }

    fn make(
        &mut self,
        scenario: &Scenario,
        options: &LabOptions,
        truth: Option<TruthWriter>,
    ) -> Result<(), LabError> {
        self.state.write()?;
        for side in SIDES {
            namespace::make(&self.namespace(side), &self.state.mark)?;
        }
        // Each packet's truth is worth two copies of its first bytes.
        let stamped = options.truth.as_ref().is_some_and(|file| file.detail == TruthDetail::Packets);
        let [a, b] = SIDES.map(|side| {
            let mtus = [IpVersion::V4, IpVersion::V6].map(|version| mtu_of(scenario, side, version));
            namespace::furnish(
                &self.namespace(side),
                &self.state.mark,
                side,
                mtus,
                self.addresses,
                scenario,
                stamped,
            )
        });
        let (largest, core) = (self.largest_packet(), self.state.core);
        self.running = Some(Running::start(scenario, options, [a?, b?], largest, core, truth)?);
        self.state.phase = Phase::Up;
        self.state.write()
    }

    fn largest_packet(&self) -> usize {
        self.state.mtu.into_iter().max().unwrap_or(LARGEST_MTU) as usize
    }

    /// A command that will run on that host. `ip netns exec` replaces itself by the program, so the
    /// child's process id is the program's own. It is kept off the emulator's core.
    pub fn command(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        command(&self.state, side, program)
    }

    /// Runs something in a thread of this process that has entered the host: sockets made there
    /// stay there.
    ///
    /// # Errors
    /// The host is gone, or whatever `work` says.
    pub fn within<T: Send>(&self, side: Side, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        namespace::within(&self.namespace(side), work)
    }

    /// Name of the host's namespace, as `ip netns` lists it.
    pub fn namespace(&self, side: Side) -> String {
        namespace::name(&self.state.prefix, side)
    }

    /// Address of a host.
    pub fn address(&self, side: Side, version: IpVersion) -> IpAddr {
        self.addresses.host(side, version)
    }

    /// All addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// MTU of a host's device, in bytes.
    pub fn mtu(&self, side: Side) -> u32 {
        self.state.mtu[usize::from(side == Side::B)]
    }

    /// As it is written down for others.
    pub fn state(&self) -> &LabState {
        &self.state
    }

    /// The model's time zero on this host's monotonic clock.
    pub fn zero(&self) -> Mono {
        self.running.as_ref().map(|running| running.epoch).unwrap_or_default()
    }

    /// The emulator's own error until now; at most a quarter of a second old.
    pub fn report(&self) -> Report {
        self.running.as_ref().map(|running| running.published.report()).unwrap_or_default()
    }

    /// Writes the present report where [`LabState::report`] finds it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_report(&self) -> Result<(), LabError> {
        state::write_report(&self.state.prefix, &self.report())
    }

    /// Ends it and gives the emulator's last report.
    ///
    /// # Errors
    /// Something of it could not be removed; `lab down` can be tried again.
    pub fn end(mut self) -> Result<Report, LabError> {
        let report = self.halt();
        down::remove(&self.state)?;
        // Drop comes once more and finds nothing.
        Ok(report)
    }

    /// As [`Self::end`], and leaves the last report to [`crate::down()`] in another process.
    ///
    /// # Errors
    /// As [`Self::end`], or the report cannot be written.
    pub fn end_for_others(mut self) -> Result<Report, LabError> {
        let report = self.halt();
        state::write_farewell(&self.state.prefix, &report)?;
        down::remove(&self.state)?;
        Ok(report)
    }

    /// Stops the path; the hosts stay.
    fn halt(&mut self) -> Report {
        let Some(running) = self.running.take() else { return Report::default() };
        running.stop.raise();
        let mut has_panicked = false;
        for thread in running.threads {
            // What it panicked at is on stderr.
            has_panicked |= thread.join().is_err();
        }
        let mut report = running.published.report();
        // Its counts end at an instant that no one knows: they are not those of a whole run.
        if has_panicked && report.ended.is_none() {
            report.ended = Some("a thread of it panicked".to_owned());
        }
        report
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.halt();
        // Nobody is left to tell; what cannot be removed is found by `lab down`.
        let _ = down::remove(&self.state);
    }
}

/// A command on a host of a lab that another process holds; kept off the emulator's core, and
/// without the secrets of this process's environment.
pub fn command(lab: &LabState, side: Side, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    netaware_private::without_secrets(&mut command);
    command.args(["netns", "exec", &namespace::name(&lab.prefix, side)]).arg(program);
    if let Some(core) = lab.core {
        system::keep_off(&mut command, core);
    }
    command
}

impl Running {
    fn start(
        scenario: &Scenario,
        options: &LabOptions,
        ends: [HostEnd; 2],
        largest_packet: usize,
        core: Option<usize>,
        mut truth: Option<TruthWriter>,
    ) -> Result<Self, LabError> {
        let [a, b] = ends;
        let epoch = clock::now();
        let emulator = Emulator::new(scenario, options.seed, largest_packet, epoch);
        if let Some(truth) = &mut truth {
            truth.write(&Opening {
                version: 1,
                scenario: &options.scenario_name,
                seed: options.seed,
                zero_mono: epoch,
                zero_wall: Wall(clock::wall().0 - (clock::now() - epoch).0),
            });
        }
        let room = match options.truth.as_ref().map(|file| file.detail) {
            None => 1,
            Some(TruthDetail::Intervals) => INTERVAL_LINES,
            Some(TruthDetail::Packets) => PACKET_LINES,
        };
        let (sender, lines) = mpsc::sync_channel(room);
        let published = Published::new(emulator.tally.clone(), [a.counters, b.counters]);
        // Held by the loop even when nothing is to be told: that it is gone tells the keeper that
        // the loop has ended.
        let life = sender.clone();
        let tap = options.truth.as_ref().map(|file| TruthTap::new(sender, file.detail));
        let scribe = Scribe::new(published.clone(), tap);
        let stop = StopFlag::new();
        let keeper = keep(lines, truth, published.clone(), options.prefix.clone())?;
        let run = {
            let (stop, published) = (stop.clone(), published.clone());
            move || {
                let stamps = [a.sent, b.sent].map(|socket| socket.map(Stamps::new));
                run(emulator, [a.tun, b.tun], stamps, scribe, core, &stop, &published);
                drop(life);
            }
        };
        let emulator = spawn("emulator", run)?;
        Ok(Self { epoch, stop, threads: [emulator, keeper], published })
    }
}

fn run(
    mut emulator: Emulator,
    tuns: [File; 2],
    stamps: [Option<Stamps>; 2],
    mut scribe: Scribe,
    core: Option<usize>,
    stop: &StopFlag,
    published: &Published,
) {
    let core = core.filter(|core| thread::pin(*core).is_ok());
    // On a core that the programs are kept away from nothing has to be above them, and nothing is
    // taken back from a thread that never sleeps. Elsewhere it goes before them, even raised ones:
    // a path does not wait for its hosts.
    let raised = if core.is_some() { priority::favour() } else { priority::raise_above_raised() };
    published.begun(raised, core);
    let mut devices = Devices::new(tuns, stamps, core.is_some());
    let mut why = None;
    while !stop.is_raised() && why.is_none() {
        why = emulator.round(&mut devices, &mut scribe).err().map(|error| error.to_string());
    }
    published.ended(&emulator.tally, why);
}

fn keep(
    lines: Receiver<Line>,
    truth: Option<TruthWriter>,
    published: Published,
    prefix: String,
) -> Result<JoinHandle<()>, LabError> {
    spawn("keeper", move || keeper::keep(&lines, truth, &published, &prefix))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LabError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(LabError::system("start a thread"))
}

fn new_state(scenario: &Scenario, options: &LabOptions) -> LabState {
    let holder = ProcessId::own();
    let (ProcessId { pid, started }, now) = (holder, clock::now());
    LabState {
        prefix: options.prefix.clone(),
        mark: format!("netaware-lab {} {pid}-{started}-{}", options.prefix, now.0),
        phase: Phase::Making,
        holder,
        holding: options.holding,
        scenario: options.scenario_name.clone(),
        about: scenario.about.clone(),
        seed: options.seed,
        hops: scenario.hops.len(),
        mtu: [Side::A, Side::B].map(|side| mtu(scenario, side)),
        core: match options.core {
            EmulatorCore::Own => own_core(),
            EmulatorCore::Shared => None,
        },
        since: clock::wall(),
    }
}

/// MTU of the host's device: that of the link it sends into, the larger one where the IP versions
/// differ.
fn mtu(scenario: &Scenario, side: Side) -> u32 {
    [IpVersion::V4, IpVersion::V6]
        .map(|version| mtu_of(scenario, side, version))
        .into_iter()
        .max()
        .unwrap_or(LEAST_MTU)
}

/// What a host knows of the link it sends into. No router stands in front of that one to answer for
/// it.
fn mtu_of(scenario: &Scenario, side: Side, version: IpVersion) -> u32 {
    let link = match side {
        Side::A => scenario.hops.first().map(|hop| &hop.forward),
        Side::B => scenario.hops.last().map(|hop| &hop.reverse),
    };
    link.map_or(LEAST_MTU, |link| link.wire(version).mtu).clamp(LEAST_MTU, LARGEST_MTU)
}

/// The highest core that no other lab has. The first core stays with the programs under test; who
/// finds no core goes without one and keeps out of their way.
fn own_core() -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let living = LabState::all().into_iter().filter(|state| state.holder.lives());
    highest_free(cores, &living.filter_map(|state| state.core).collect::<Vec<_>>())
}

fn highest_free(cores: usize, taken: &[usize]) -> Option<usize> {
    (1..cores).rev().find(|core| !taken.contains(core))
}

const SIDES: [Side; 2] = [Side::A, Side::B];
/// Below it a device has no IPv6.
const LEAST_MTU: u32 = 1280;
const LARGEST_MTU: u32 = 65_535;
/// Lines of truth on their way to the file: minutes of them.
const INTERVAL_LINES: usize = 4096;
/// The same of packets: ten seconds at 50,000/s. Whoever measures at such rates leaves the thread
/// that writes little of the cores.
const PACKET_LINES: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_lab_does_not_find_our_key_in_its_environment() {
        let state = LabState {
            prefix: "lab".to_owned(),
            mark: String::new(),
            phase: Phase::Up,
            holder: ProcessId::own(),
            holding: Holding::Run,
            scenario: String::new(),
            about: String::new(),
            seed: 0,
            hops: 0,
            mtu: [1500; 2],
            core: None,
            since: Wall(0),
        };
        let command = command(&state, Side::A, "true");
        for name in netaware_private::SECRET_VARIABLES {
            assert!(command.get_envs().any(|removed| removed == (OsStr::new(name), None)), "{name}");
        }
    }

    #[test]
    fn each_lab_has_a_core_of_its_own_and_the_first_one_is_for_programs() {
        let rows: [(usize, &[usize], Option<usize>); 6] = [
            (1, &[], None),
            (2, &[], Some(1)),
            (2, &[1], None),
            (4, &[3], Some(2)),
            (4, &[2], Some(3)),
            (4, &[1, 2, 3], None),
        ];
        for (cores, taken, core) in rows {
            assert_eq!(highest_free(cores, taken), core, "{cores} cores, {taken:?} taken");
        }
    }
}

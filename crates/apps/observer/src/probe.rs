//! The probe as a whole: follows instructions, keeps stations and active tasks as they say, and
//! says how it is.
//!
//! One controller instructs a probe (RFC 7594 §5): the first collector that was named. Further ones
//! get sightings and reports only. A task that cannot be done is refused with its reason, the
//! others run. When an instruction changes, tasks that stay the same go on undisturbed, with what
//! they have counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::thread;
use netaware_passive::{Link as Interface, Seed, watch};
use netaware_record::passive::ClockState;
use netaware_units::{Mono, Span, Wall};
use netaware_wire::lmap::{Instruction, Task, What};
use netaware_wire::packet::Tunnels;

use crate::active::{self, Active, StampRun};
use crate::link::{Heard, Said, held};
use crate::watch::report::{Outlet, Reporter, Told};
use crate::watch::run::{Ended, Order, Pace, Runner, WAITING};
use crate::watch::source::Source;
use crate::watch::station::{Matcher, Setup, Station, is_changed};

/// What was refused, or has failed, is tried again so often: an interface may have come.
const RETRY: Span = Span::from_secs(5);

/// What a probe stands on: the host's interfaces, or a file.
pub trait Ground: Send {
    /// Interfaces that packets can be watched on, the usual one first.
    fn interfaces(&self) -> Vec<String>;

    /// Opens one: a source, or several that share its packets, both directions of a flow in one of
    /// them.
    ///
    /// # Errors
    /// Why not, and what to do, for people.
    fn open(&mut self, interface: &str) -> Result<Vec<Box<dyn Source>>, String>;

    /// What is known of it.
    fn link(&self, interface: &str) -> Interface;

    /// A filter in tcpdump's language, for user space.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn compile(&self, filter: &str, interface: &str) -> Result<Matcher, String>;

    /// Which clock ends periods.
    fn pace(&self) -> Pace;
}

/// What a probe needs besides its ground.
pub struct ProbeSettings {
    /// Its name.
    pub name: String,
    /// Tunnels that are looked into.
    pub tunnels: Tunnels,
    /// Tells the clock's state; called once a report.
    pub clock: Box<dyn FnMut() -> ClockState + Send>,
    /// Runs flows of STAMP packets.
    pub stamp: StampRun,
    /// For spreading starts.
    pub random: u64,
    /// What collectors are told.
    pub said: Arc<Mutex<Said>>,
}

impl std::fmt::Debug for ProbeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

struct Post {
    interface: String,
    tasks: BTreeMap<String, Task>,
    /// One, or several that share the packets.
    rings: Vec<RingPost>,
}

impl Post {
    fn is_finished(&self) -> bool {
        self.rings.iter().any(|ring| ring.thread.is_finished())
    }
}

struct RingPost {
    orders: Sender<Order>,
    thread: JoinHandle<Ended>,
    stop: StopFlag,
    index: usize,
}

/// See the module.
pub struct Probe<G: Ground> {
    ground: G,
    tunnels: Tunnels,
    said: Arc<Mutex<Said>>,
    active: Active,
    posts: Vec<Post>,
    stations: usize,
    instruction: Option<Instruction>,
    /// Tasks that the suppression held for when they were last set.
    suppressed: BTreeSet<String>,
    told: SyncSender<Told>,
    retry_at: Mono,
    /// When to look again at what the process takes.
    own_use_at: Mono,
    refused: BTreeMap<String, String>,
}

impl<G: Ground> std::fmt::Debug for Probe<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("stations", &self.posts.len()).finish_non_exhaustive()
    }
}

/// The thread behind a probe that makes reports.
pub struct Reporting<O>(JoinHandle<O>);

impl<O> std::fmt::Debug for Reporting<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporting")
    }
}

impl<O> Reporting<O> {
    /// Waits until everything that was told is in the outlet; the probe has to be gone.
    pub fn join(self) -> Option<O> {
        self.0.join().ok()
    }
}

impl<G: Ground> Probe<G> {
    /// Without instruction. Reports go to `outlet`; periods of probes without packets have this
    /// `length`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn new<O: Outlet + 'static>(
        ground: G,
        settings: ProbeSettings,
        outlet: O,
        length: Span,
    ) -> std::io::Result<(Self, Reporting<O>)> {
        let (told, news) = mpsc::sync_channel(WAITING);
        let reporter = Reporter::new(settings.name, length, outlet, settings.clock, Box::new(clock::wall));
        let reporter =
            std::thread::Builder::new().name("probe-reports".into()).spawn(move || reporter.run(&news))?;
        let active = Active::new(told.clone(), settings.stamp, settings.random);
        let probe = Self {
            ground,
            tunnels: settings.tunnels,
            said: settings.said,
            active,
            posts: Vec::new(),
            stations: 0,
            instruction: None,
            suppressed: BTreeSet::new(),
            told,
            retry_at: Mono(0),
            own_use_at: Mono(0),
            refused: BTreeMap::new(),
        };
        Ok((probe, Reporting(reporter)))
    }

    /// Follows what collectors say until told to stop.
    pub fn run(mut self, news: &Receiver<Heard>, stop: &StopFlag) {
        while !stop.is_raised() {
            match news.recv_timeout(Duration::from_millis(50)) {
                Ok(Heard::Instruction(0, instruction)) => self.follow(*instruction),
                // What is suppressed is not among the active tasks: its start is missed.
                Ok(Heard::Start(0, task, _)) => self.active.start(&task),
                Ok(Heard::Joined(which)) => tracing::info!(collector = which, "joined"),
                // Further collectors instruct nobody; links tell of their losses themselves.
                Ok(Heard::Instruction(..) | Heard::Start(..) | Heard::Lost(..))
                | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => clock::sleep(Span::from_millis(50)),
            }
            self.tick();
        }
        self.end();
    }

    /// Looks after everything; to be called every 50 ms or so.
    pub fn tick(&mut self) {
        self.tick_at(clock::wall());
    }

    fn tick_at(&mut self, now: Wall) {
        let suppressed = self.suppressed_at(now);
        if suppressed != self.suppressed {
            self.apply(now);
        }
        self.active.tick(now);
        self.mend(now);
        let own_use = self.own_use_if_due(clock::now());
        let mut said = held(&self.said);
        said.status.missed = self.active.missed();
        said.status.running = self.active.running();
        if let Some((memory, cpu_ns)) = own_use {
            (said.status.memory, said.status.cpu_ns) = (memory, cpu_ns);
        }
    }

    /// What the process takes, seldom: asking for it at every tick was more than half of what an
    /// idle probe took.
    fn own_use_if_due(&mut self, now: Mono) -> Option<(u64, u64)> {
        let is_due = now >= self.own_use_at;
        is_due.then(|| {
            self.own_use_at = now + OWN_USE_EVERY;
            own_use()
        })
    }

    /// Whether all stations have ended by themselves: the file is read.
    pub fn is_finished(&self) -> bool {
        self.posts.iter().all(Post::is_finished)
    }

    /// What is refused at present.
    pub fn refused(&self) -> &BTreeMap<String, String> {
        &self.refused
    }

    /// Does what an instruction says, as far as it can be done.
    pub fn follow(&mut self, instruction: Instruction) {
        self.follow_at(instruction, clock::wall());
    }

    fn follow_at(&mut self, instruction: Instruction, now: Wall) {
        let anew = self.instruction.as_ref().is_some_and(|before| {
            before.seed != instruction.seed || before.period_ms != instruction.period_ms
        });
        if anew {
            // Digests of two seeds must not meet in one table, nor rows of two lengths in one
            // period.
            self.leave_posts();
        }
        self.instruction = Some(instruction);
        self.apply(now);
    }

    fn apply(&mut self, now: Wall) {
        self.suppressed = self.suppressed_at(now);
        let Some(instruction) = self.instruction.clone() else { return };
        self.refused.clear();
        let faults = instruction.faults();
        self.refused.extend(faults.iter().map(|(name, fault)| ((*name).to_owned(), fault.to_string())));
        let wanted = instruction.tasks.iter().filter(|(name, _)| {
            !faults.contains_key(name.as_str()) && !self.suppressed.contains(name.as_str())
        });
        let (passive, active): (BTreeMap<_, _>, BTreeMap<_, _>) = wanted
            .map(|(name, task)| (name.clone(), task.clone()))
            .partition(|(_, task)| task.what.is_passive());
        let period = Span::from_millis(i64::from(instruction.period_ms));
        self.set_active(active, period, now);
        self.set_passive(passive, &instruction);
        held(&self.said).following = Some((instruction.number, self.refused.clone()));
        for (task, why) in &self.refused {
            tracing::warn!(task, "refused: {why}");
        }
    }

    fn set_active(&mut self, mut tasks: BTreeMap<String, Task>, period: Span, now: Wall) {
        tasks.retain(|name, task| {
            let What::Measure { command, target, options, .. } = &task.what else {
                return true;
            };
            let Some(why) = active::refusal(command, target, options) else { return true };
            self.refused.insert(name.clone(), why);
            false
        });
        self.active.set(tasks, period, now);
    }

    fn set_passive(&mut self, tasks: BTreeMap<String, Task>, instruction: &Instruction) {
        drop(self.told.send(Told::Tasks(tasks.clone())));
        let mut by_interface: BTreeMap<String, BTreeMap<String, Task>> = BTreeMap::new();
        let interfaces = self.ground.interfaces();
        for (name, task) in tasks {
            let wanted = task.interface.as_ref().or(interfaces.first());
            let Some(interface) = wanted.filter(|wanted| interfaces.contains(wanted)).cloned() else {
                let there = interfaces.join(", ");
                let which = wanted.map_or("to watch", String::as_str);
                self.refused.insert(name, format!("there is no interface {which}; there are: {there}"));
                continue;
            };
            by_interface.entry(interface).or_default().insert(name, task);
        }
        let (left, kept) = std::mem::take(&mut self.posts)
            .into_iter()
            .partition(|post: &Post| !by_interface.contains_key(&post.interface) || post.is_finished());
        self.posts = kept;
        self.leave(left);
        for (interface, tasks) in by_interface {
            if let Err(why) = self.man(&interface, &tasks, instruction) {
                for name in tasks.keys() {
                    self.refused.entry(name.clone()).or_insert_with(|| why.clone());
                }
            }
        }
    }

    /// Sets the tasks of one interface; opens it if it is not yet.
    fn man(
        &mut self,
        interface: &str,
        tasks: &BTreeMap<String, Task>,
        instruction: &Instruction,
    ) -> Result<(), String> {
        let seed = Seed::parse(&instruction.seed).map_err(|error| error.to_string())?;
        let link = self.ground.link(interface);
        let place = match self.posts.iter().position(|post| post.interface == interface) {
            Some(place) => place,
            None => self.occupy(interface, Span::from_millis(i64::from(instruction.period_ms)))?,
        };
        let running = &self.posts[place].tasks;
        let rings = self.posts[place].rings.len();
        let (mut keep, mut now_running) = (Vec::new(), BTreeMap::new());
        let mut add: Vec<Vec<Setup>> = (0..rings).map(|_| Vec::new()).collect();
        for (name, task) in tasks {
            if running.get(name) == Some(task) {
                keep.push(name.clone());
            } else {
                let setups: Result<Vec<Setup>, String> = suits(&task.what, rings).and_then(|()| {
                    (0..rings).map(|_| self.setup(name, task, interface, &seed, &link)).collect()
                });
                match setups {
                    Ok(setups) => add.iter_mut().zip(setups).for_each(|(add, setup)| add.push(setup)),
                    Err(why) => {
                        self.refused.insert(name.clone(), why);
                        continue;
                    }
                }
            }
            now_running.insert(name.clone(), task.clone());
        }
        let filters: BTreeSet<Option<&str>> =
            now_running.values().map(|task| task.filter.as_deref()).collect();
        let kernel = self.union(&filters, interface);
        // Packets that lie in the ring came through the filter before this one.
        let begins = add.iter().any(|add| !add.is_empty());
        let changed = !running.is_empty() && (begins || keep.len() < running.len());
        let each = filters.len() > 1 || kernel.is_none() || changed;
        let post = &mut self.posts[place];
        post.tasks = now_running;
        let at = clock::wall();
        for (ring, add) in post.rings.iter().zip(add) {
            let order = Order::Tasks { keep: keep.clone(), add, filters: each, kernel: kernel.clone(), at };
            ring.orders.send(order).map_err(|_| format!("the capture on {interface} has ended"))?;
        }
        Ok(())
    }

    fn setup(
        &self,
        name: &str,
        task: &Task,
        interface: &str,
        seed: &Seed,
        link: &Interface,
    ) -> Result<Setup, String> {
        let program =
            task.filter.as_ref().map(|filter| self.ground.compile(filter, interface)).transpose()?;
        let make = || watch(&task.what, seed, link).map_err(|error| error.to_string());
        // Which of two tables is there would depend on how fast threads are, and what each
        // remembers on that.
        let changes = is_changed(&task.what) && self.ground.pace() == Pace::Live;
        let spare = if changes { Some(make()?) } else { None };
        Ok(Setup { watch: make()?, spare, name: name.to_owned(), program, task: task.clone() })
    }

    /// One filter for the kernel that lets through what any task wants; `None`: everything, tasks
    /// look themselves.
    ///
    /// In tcpdump's language some words (`vlan`, `mpls`, ...) move the offsets of everything behind
    /// them, so filters with such words are not joined.
    fn union(&self, filters: &BTreeSet<Option<&str>>, interface: &str) -> Option<String> {
        const MOVING: [&str; 6] = ["vlan", "mpls", "pppoes", "pppoed", "geneve", "gtp"];
        let texts: Option<Vec<&str>> = filters.iter().copied().collect();
        let texts = texts.filter(|texts| !texts.is_empty())?;
        if let [only] = texts[..] {
            return Some(only.to_owned());
        }
        if texts.iter().any(|text| MOVING.iter().any(|word| text.contains(word))) {
            return None;
        }
        let joined: Vec<String> = texts.iter().map(|text| format!("({text})")).collect();
        // A union that the machine has no room for is done without.
        Some(joined.join(" or ")).filter(|text| self.ground.compile(text, interface).is_ok())
    }

    /// Opens an interface and starts its threads.
    fn occupy(&mut self, interface: &str, length: Span) -> Result<usize, String> {
        let now = clock::wall();
        let mut post = Post { interface: interface.to_owned(), tasks: BTreeMap::new(), rings: Vec::new() };
        let sources = self.ground.open(interface)?;
        let cores = cores_of(sources.len(), &thread::allowed_cores());
        for (source, core) in sources.into_iter().zip(cores) {
            match self.start_ring((interface, core), length, now, source) {
                Ok(ring) => post.rings.push(ring),
                Err(why) => {
                    self.leave(vec![post]);
                    return Err(why);
                }
            }
        }
        self.posts.push(post);
        Ok(self.posts.len() - 1)
    }

    fn start_ring(
        &mut self,
        (interface, core): (&str, Option<usize>),
        length: Span,
        now: Wall,
        mut source: Box<dyn Source>,
    ) -> Result<RingPost, String> {
        let index = self.stations;
        self.stations += 1;
        let (orders, received) = mpsc::channel();
        let stop = StopFlag::new();
        let runner = Runner {
            index,
            station: Station::new(length, now, self.tunnels),
            pace: self.ground.pace(),
            orders: received,
            told: self.told.clone(),
        };
        // The reporter knows the station before anything comes from it.
        drop(self.told.send(Told::Station(index, interface.to_owned())));
        let (told, flag) = (self.told.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("probe-capture".into())
            .spawn(move || {
                if let Some(Err(error)) = core.map(thread::pin) {
                    tracing::warn!("a ring's thread goes from core to core: {error}");
                }
                runner.run(&mut *source, &flag)
            })
            .map_err(|error| {
                drop(told.send(Told::Ended(index)));
                format!("cannot start a thread: {error}")
            })?;
        Ok(RingPost { orders, thread, stop, index })
    }

    /// A station whose source failed (an interface that was taken away) is tried again as soon as
    /// its interface is there.
    fn mend(&mut self, now: Wall) {
        if self.ground.pace() == Pace::Replay {
            return;
        }
        let ended = self.posts.iter().any(Post::is_finished);
        if (ended || !self.refused.is_empty()) && clock::now() >= self.retry_at {
            self.retry_at = clock::now() + RETRY;
            self.apply(now);
        }
    }

    fn leave_posts(&mut self) {
        let posts = std::mem::take(&mut self.posts);
        self.leave(posts);
    }

    fn leave(&mut self, posts: Vec<Post>) -> Option<String> {
        let mut failed = None;
        for ring in posts.iter().flat_map(|post| &post.rings) {
            ring.stop.raise();
        }
        for Post { interface, rings, .. } in posts {
            for ring in rings {
                // A ring that never got an order waits for one.
                drop(ring.orders);
                match ring.thread.join() {
                    Ok(Ended::Failed(why)) => {
                        tracing::warn!(interface, "{why}");
                        failed = Some(why);
                    }
                    Ok(Ended::Stopped | Ended::End) => {}
                    Err(_) => tracing::error!(interface, "the capturing thread panicked"),
                }
                drop(self.told.send(Told::Ended(ring.index)));
            }
        }
        failed
    }

    /// Ends everything; the last reports are made. Why a source failed, if one did.
    pub fn end(mut self) -> Option<String> {
        self.active.end();
        let posts = std::mem::take(&mut self.posts);
        self.leave(posts)
    }

    fn suppressed_at(&self, now: Wall) -> BTreeSet<String> {
        let Some(instruction) = &self.instruction else { return BTreeSet::new() };
        let Some(suppression) = &instruction.suppression else { return BTreeSet::new() };
        let concerned =
            instruction.tasks.iter().filter(|(name, task)| suppression.concerns(name, &task.what, now));
        concerned.map(|(name, _)| name.clone()).collect()
    }
}

/// The core that each ring of an interface stays on: its tables are then in that core's caches, and
/// two rings never wait for one core while another is idle. None where there is one ring, or fewer
/// cores than rings.
fn cores_of(rings: usize, allowed: &[usize]) -> Vec<Option<usize>> {
    let pinned = (2..=allowed.len()).contains(&rings);
    (0..rings).map(|ring| allowed.get(ring).copied().filter(|_| pinned)).collect()
}

/// Whether a task can do with one ring's share of the packets at a time.
fn suits(what: &What, rings: usize) -> Result<(), String> {
    // Flows of one source come apart, and what lies between its packets is then missing in each
    // ring.
    if rings > 1 && matches!(what, What::Capacity { .. }) {
        return Err("capacity needs all packets of a source in one ring: use --rings 1".to_owned());
    }
    Ok(())
}

/// As often as a collector hears of it.
const OWN_USE_EVERY: Span = Span::from_secs(1);

/// Resident memory, bytes, and CPU time, ns; 0 where the system does not say.
fn own_use() -> (u64, u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    // User and system time are the 14th and 15th field, the 12th and 13th behind the name; 100
    // ticks a second on every Linux.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
    (pages * 4096, ticks * 10_000_000)
}

#[cfg(test)]
mod tests;

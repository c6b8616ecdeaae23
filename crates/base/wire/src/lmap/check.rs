//! What a message may contain: everything else is refused with the field and the reason.
//!
//! Lists and texts are bounded by the frame already; the bounds here are of meaning, so that
//! whoever gets a message past [`FromProbe::parse`] or [`FromCollector::parse`] can allocate by its
//! numbers and print its names.

use std::collections::BTreeMap;
use std::fmt;

use super::{
    DigestFunction, FromCollector, FromProbe, Instruction, KEY_PARTS, LEAST_PAYLOAD, MAX_BATCH, MAX_FILTER,
    MAX_LIST, MAX_NAME, MAX_TASKS, MAX_WHY, MEASUREMENTS, MOST_FLOWS, MOST_KEYS, MOST_PAYLOAD, MOST_SOURCES,
    MOST_TALKERS, ProbeStatus, Schedule, Suppression, Task, What,
};
use crate::Token;
use crate::frame::{self, FrameError};

/// A field and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which field, as on the wire.
    pub field: &'static str,
    /// What it has to be.
    pub wanted: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' has to be {}", self.field, self.wanted)
    }
}

impl std::error::Error for Fault {}

/// Why a message could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// It is none. [`FrameError::UnknownType`] is that of a later version: the connection can go
    /// on.
    Frame(FrameError),
    /// It is out of bounds.
    Fault(Fault),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Fault(fault) => write!(f, "a message is out of bounds: {fault}"),
        }
    }
}

impl std::error::Error for MessageError {}

impl From<FrameError> for MessageError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<Fault> for MessageError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Whether `text` can name a probe or a task: 1 to [`MAX_NAME`] of `a-z`, `0-9` and `-`, for tasks
/// `_` and `.` too.
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(fits)
}

/// The name of an interface, as the system allows it.
pub fn is_interface(text: &str) -> bool {
    is_word(text, 15) && !text.contains('/')
}

/// Of what a task does on one of several interfaces: `TASK/INTERFACE`.
fn is_task_name(text: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    let (name, interface) = text.split_once('/').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let sane = interface.is_none_or(is_interface);
    !name.is_empty() && text.len() <= MAX_NAME && name.bytes().all(fits) && sane
}

/// The name of an interface, a host or an option: printable, without spaces.
fn is_word(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_line(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}

fn is_token(text: &str) -> bool {
    text.parse::<Token>().is_ok()
}

fn is_proof(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn need(holds: bool, field: &'static str, wanted: &'static str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { field, wanted }) }
}

const NAME: &str = "1 to 63 of a-z, 0-9 and '-'";
const TASK: &str = "1 to 63 of a-z, 0-9, '-', '_' and '.'";
const TOKEN: &str = "32 hexadecimal digits";
const PROOF: &str = "64 hexadecimal digits";
const WORDS: &str = "at most 256 words of 1 to 63 printable characters";
const LINE: &str = "one line of at most 1024 bytes";

frame::messages!(FromProbe, FromCollector);

impl FromProbe {
    /// Types that are known, for [`frame::parse`].
    pub const TYPES: &[&str] = &["hello", "following", "status", "batch"];

    /// Reads the body of a frame and holds it against the bounds.
    ///
    /// # Errors
    /// It is no message, or one that is out of bounds.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let message: Self = frame::parse(body)?;
        message.check()?;
        Ok(message)
    }

    /// Whether everything is within its bounds.
    ///
    /// # Errors
    /// The first field that is not.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Hello {
                probe,
                nonce,
                proof,
                software,
                abilities,
                interfaces,
                addresses,
                instruction: _,
                incarnation,
            } => {
                need(is_name(probe), "probe", NAME)?;
                need(is_token(nonce), "nonce", TOKEN)?;
                need(is_proof(proof), "proof", PROOF)?;
                need(is_word(software, MAX_NAME), "software", "1 to 63 printable characters")?;
                need(words(abilities), "abilities", WORDS)?;
                need(words(interfaces), "interfaces", WORDS)?;
                need(addresses.len() <= MAX_LIST, "addresses", "at most 256")?;
                need(is_token(incarnation), "incarnation", TOKEN)
            }
            Self::Following { instruction: _, refused } => {
                let fits = refused.iter().all(|(task, why)| is_task_name(task) && is_line(why, MAX_WHY));
                need(refused.len() <= MAX_TASKS && fits, "refused", "names of tasks and one line for each")
            }
            Self::Status(status) => status.check(),
            Self::Batch { sequence, ipfix, report, selections } => {
                need(*sequence > 0, "sequence", "1 at least")?;
                let length = u64::from(*ipfix) + u64::from(*report);
                need((1..=u64::from(MAX_BATCH)).contains(&length), "ipfix", "with 'report' 1 byte to 4 MiB")?;
                let named = selections.keys().all(|task| is_task_name(task));
                need(named && selections.len() <= MAX_TASKS, "selections", "names of at most 128 tasks")
            }
        }
    }
}

fn words(list: &[String]) -> bool {
    list.len() <= MAX_LIST && list.iter().all(|word| is_word(word, MAX_NAME))
}

impl ProbeStatus {
    fn check(&self) -> Result<(), Fault> {
        let fits = self.running.len() <= MAX_TASKS && self.running.iter().all(|task| is_task_name(task));
        need(fits, "running", "names of at most 128 tasks")
    }
}

impl FromCollector {
    /// Types that are known, for [`frame::parse`].
    pub const TYPES: &[&str] = &["challenge", "welcome", "refusal", "instruction", "taken", "start"];

    /// Reads the body of a frame and holds it against the bounds. Tasks of an instruction are not
    /// looked at here, but one by one with [`Task::check`]: a bad one is refused alone.
    ///
    /// # Errors
    /// It is no message, or one that is out of bounds.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let message: Self = frame::parse(body)?;
        message.check()?;
        Ok(message)
    }

    /// Whether everything is within its bounds; tasks are not looked at.
    ///
    /// # Errors
    /// The first field that is not.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Challenge { nonce } => need(is_token(nonce), "nonce", TOKEN),
            Self::Welcome { proof, taken: _ } => need(is_proof(proof), "proof", PROOF),
            Self::Refusal { why, again_after: _ } => need(is_line(why, MAX_WHY), "why", LINE),
            Self::Instruction(instruction) => instruction.check(),
            Self::Taken { sequence: _ } => Ok(()),
            Self::Start { task, run: _ } => need(is_task_name(task), "task", TASK),
        }
    }
}

impl Instruction {
    /// Everything but the tasks themselves.
    ///
    /// # Errors
    /// The first field that is out of bounds.
    pub fn check(&self) -> Result<(), Fault> {
        need(self.tasks.len() <= MAX_TASKS, "tasks", "at most 128")?;
        need(self.tasks.keys().all(|name| is_task_name(name)), "tasks", TASK)?;
        need(is_token(&self.seed), "seed", TOKEN)?;
        need((100..=3_600_000).contains(&self.period_ms), "period_ms", "100 to 3600000")?;
        self.suppression.as_ref().map_or(Ok(()), Suppression::check)
    }

    /// Tasks that are out of bounds, and why: what a controller refuses to send, and a probe to do.
    pub fn faults(&self) -> BTreeMap<&str, Fault> {
        let faults = self.tasks.iter().filter_map(|(name, task)| Some((name.as_str(), task.check().err()?)));
        faults.collect()
    }
}

impl Suppression {
    fn check(&self) -> Result<(), Fault> {
        let fits = self.tasks.len() <= MAX_TASKS && self.tasks.iter().all(|task| is_task_name(task));
        need(fits, "suppression", "names of at most 128 tasks")
    }
}

impl Task {
    /// Whether it can be done as far as its numbers tell; whether there is such an interface is for
    /// the probe to say.
    ///
    /// # Errors
    /// The first field that is out of bounds.
    pub fn check(&self) -> Result<(), Fault> {
        let interface = self.interface.as_ref().is_none_or(|name| is_word(name, 15));
        need(interface, "interface", "1 to 15 printable characters")?;
        let filter = self.filter.as_ref().is_none_or(|text| is_line(text, MAX_FILTER));
        need(filter, "filter", "one line of at most 4096 bytes")?;
        self.schedule.as_ref().map_or(Ok(()), Schedule::check)?;
        self.what.check()
    }
}

impl Schedule {
    fn check(&self) -> Result<(), Fault> {
        // A week; a day of spread.
        need((100..=604_800_000).contains(&self.every_ms), "every_ms", "100 to 604800000")?;
        need(self.spread_ms <= 86_400_000, "spread_ms", "at most 86400000")?;
        let ordered = self.from.zip(self.until).is_none_or(|(from, until)| from < until);
        need(ordered, "until", "after 'from'")
    }
}

impl What {
    /// Whether packets are watched for it, rather than sent.
    pub fn is_passive(&self) -> bool {
        !matches!(self, Self::Stamp { .. } | Self::Measure { .. })
    }

    /// The kind, as on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Volume { .. } => "volume",
            Self::Traffic { .. } => "traffic",
            Self::Digest { .. } => "digest",
            Self::Rtt { .. } => "rtt",
            Self::Marking { .. } => "marking",
            Self::Capacity { .. } => "capacity",
            Self::Stamp { .. } => "stamp",
            Self::Measure { .. } => "measure",
        }
    }

    /// Whether its numbers are within bounds.
    ///
    /// # Errors
    /// The first field that is not.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Volume { by, prefix, keys } => volume(by, *prefix, *keys),
            Self::Traffic { slice_ms, top } => {
                need((1..=3_600_000).contains(slice_ms), "slice_ms", "1 to 3600000")?;
                need(*top <= MOST_TALKERS, "top", "at most 1000")
            }
            Self::Digest { share, payload, function, initialiser } => {
                need(*share > 0.0 && *share <= 1.0, "share", "above 0 and at most 1")?;
                let begins = initialiser.is_none() || *function == DigestFunction::Bob;
                need(begins, "initialiser", "left out where the function is not 'bob'")?;
                need((LEAST_PAYLOAD..=MOST_PAYLOAD).contains(payload), "payload", "4 to 256")
            }
            Self::Rtt { flows } => need((1..=MOST_FLOWS).contains(flows), "flows", "1 to 1000000"),
            Self::Marking { colour_bit, delay_bit, block_ms } => {
                need(*colour_bit < 6, "colour_bit", "0 to 5")?;
                let apart = delay_bit.is_none_or(|bit| bit < 6 && bit != *colour_bit);
                need(apart, "delay_bit", "0 to 5 and not the colour's")?;
                need((10..=3_600_000).contains(block_ms), "block_ms", "10 to 3600000")
            }
            Self::Capacity { sources } => need((1..=MOST_SOURCES).contains(sources), "sources", "1 to 20000"),
            Self::Stamp { target, interval_ns, length, peer, version } => {
                need(is_word(target, 255), "target", "a name or an address")?;
                need((10_000..=60_000_000_000).contains(interval_ns), "interval_ns", "10 us to 60 s")?;
                need((44..=65_487).contains(length), "length", "44 to 65487")?;
                need(peer.as_deref().is_none_or(is_name), "peer", NAME)?;
                need(version.is_none_or(|version| matches!(version, 4 | 6)), "version", "4 or 6")
            }
            Self::Measure { command, target, options, peer } => {
                need(MEASUREMENTS.contains(&command.as_str()), "command", "one of the measurements")?;
                need(is_word(target, 255), "target", "a name or an address")?;
                let fits = options.iter().all(|(name, value)| is_word(name, MAX_NAME) && is_line(value, 255));
                need(options.len() <= 64 && fits, "options", "at most 64 names with a line each")?;
                need(peer.as_deref().is_none_or(is_name), "peer", NAME)
            }
        }
    }
}

fn volume(by: &[String], prefix: Option<(u8, u8)>, keys: u32) -> Result<(), Fault> {
    let known = by.iter().all(|part| KEY_PARTS.contains(&part.as_str()));
    need(known && by.len() <= KEY_PARTS.len(), "by", "parts of the key, each once")?;
    let prefix = prefix.is_none_or(|(four, six)| four <= 32 && six <= 128);
    need(prefix, "prefix", "at most 32 and 128")?;
    need((1..=MOST_KEYS).contains(&keys), "keys", "1 to 4000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(what: What) -> Task {
        Task { interface: None, filter: None, what, schedule: None }
    }

    fn digest(share: f64) -> Task {
        task(What::Digest { share, payload: 40, function: DigestFunction::default(), initialiser: None })
    }

    #[test]
    fn each_bound_has_its_reason() {
        let volume = |by: &[&str], prefix, keys| {
            task(What::Volume { by: by.iter().map(ToString::to_string).collect(), prefix, keys })
        };
        let stamp = |length, version| {
            let target = "b".to_owned();
            task(What::Stamp { target, interval_ns: 1_000_000, length, peer: None, version })
        };
        let hash = |payload, function, initialiser| {
            task(What::Digest { share: 1.0, payload, function, initialiser })
        };
        let payload = |payload| hash(payload, DigestFunction::Sip, None);
        let every = |every_ms, from, until| Task {
            schedule: Some(Schedule { every_ms, spread_ms: 0, from, until }),
            ..digest(1.0)
        };
        let rows: &[(u32, Task, Option<&str>)] = &[
            (1, digest(1.0), None),
            (2, digest(0.0), Some("share")),
            (3, digest(f64::NAN), Some("share")),
            (4, volume(&["source", "dscp"], Some((24, 64)), 10), None),
            (5, volume(&["colour"], None, 10), Some("by")),
            (6, volume(&[], Some((33, 64)), 10), Some("prefix")),
            (7, volume(&[], None, 0), Some("keys")),
            (8, stamp(44, None), None),
            (9, stamp(43, Some(4)), Some("length")),
            (10, stamp(44, Some(5)), Some("version")),
            (11, Task { filter: Some("tcp\nudp".into()), ..digest(1.0) }, Some("filter")),
            (
                12,
                Task { interface: Some("a name that is far too long".into()), ..digest(1.0) },
                Some("interface"),
            ),
            (13, every(1000, Some(1), Some(2)), None),
            (14, every(1, None, None), Some("every_ms")),
            (15, every(1000, Some(2), Some(2)), Some("until")),
            (16, task(What::Marking { colour_bit: 1, delay_bit: Some(1), block_ms: 100 }), Some("delay_bit")),
            (17, task(What::Rtt { flows: MOST_FLOWS + 1 }), Some("flows")),
            (18, task(What::Capacity { sources: MOST_SOURCES + 1 }), Some("sources")),
            (19, payload(LEAST_PAYLOAD - 1), Some("payload")),
            (20, payload(MOST_PAYLOAD), None),
            (21, payload(MOST_PAYLOAD + 1), Some("payload")),
            (22, hash(40, DigestFunction::Bob, Some(0x9a3f_9a3f)), None),
            (23, hash(40, DigestFunction::Sip, Some(1)), Some("initialiser")),
        ];
        for (row, task, fault) in rows {
            assert_eq!(task.check().err().map(|fault| fault.field), *fault, "row {row}");
        }
    }

    #[test]
    fn a_bad_task_is_told_by_name_and_the_others_stay() {
        let tasks = [("good".to_owned(), digest(0.5)), ("bad".to_owned(), digest(2.0))].into();
        let instruction =
            Instruction { number: 7, tasks, seed: "0".repeat(32), period_ms: 1000, suppression: None };
        let body = &frame::emit(&FromCollector::Instruction(instruction.clone())).unwrap()[4..];
        assert_eq!(FromCollector::parse(body), Ok(FromCollector::Instruction(instruction.clone())));
        let faults = instruction.faults();
        assert_eq!(faults.keys().copied().collect::<Vec<_>>(), ["bad"]);
        assert_eq!(faults["bad"].to_string(), "'share' has to be above 0 and at most 1");
    }

    #[test]
    fn names_that_could_do_harm_elsewhere_are_none() {
        for name in ["", "Bern", "a b", "a/b", "..", "a\u{7f}", "é", &"a".repeat(64)] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("bern-1") && !is_name("bern_1") && is_task_name("web_rtt.v6"));
        assert!(is_task_name("delay/eth0.5") && !is_task_name("delay/") && !is_task_name("/eth0"));
        assert!(!is_task_name("delay/a/b") && !is_task_name("delay/an-interface-of-19"));
    }

    /// The field of a greeting that is out of bounds, if one is.
    fn fault_of_hello(
        change: impl FnOnce(&mut Vec<String>, &mut Vec<String>, &mut String),
    ) -> Option<&'static str> {
        let (mut abilities, mut interfaces) = (vec!["digest".to_owned()], vec!["eth0".to_owned()]);
        let mut software = "0.1.0".to_owned();
        change(&mut abilities, &mut interfaces, &mut software);
        let hello = FromProbe::Hello {
            probe: "bern-1".into(),
            nonce: "0".repeat(32),
            proof: "0".repeat(64),
            software,
            abilities,
            interfaces,
            addresses: Vec::new(),
            instruction: None,
            incarnation: "0".repeat(32),
        };
        hello.check().err().map(|fault| fault.field)
    }

    #[test]
    fn a_list_has_at_most_256_words_and_each_is_printable() {
        let word = || "w".to_owned();
        assert_eq!(fault_of_hello(|_, _, _| {}), None);
        assert_eq!(fault_of_hello(|abilities, _, _| *abilities = vec![word(); 256]), None);
        assert_eq!(fault_of_hello(|abilities, _, _| *abilities = vec![word(); 257]), Some("abilities"));
        assert_eq!(fault_of_hello(|abilities, _, _| abilities.push("a b".into())), Some("abilities"));
        assert_eq!(fault_of_hello(|_, interfaces, _| interfaces.push(String::new())), Some("interfaces"));
        assert_eq!(fault_of_hello(|_, interfaces, _| *interfaces = vec![word(); 257]), Some("interfaces"));
    }

    #[test]
    fn a_word_has_1_to_63_bytes_and_the_name_of_an_interface_15() {
        for (bytes, fault) in [(0, Some("software")), (1, None), (63, None), (64, Some("software"))] {
            assert_eq!(fault_of_hello(|_, _, software| *software = "s".repeat(bytes)), fault, "{bytes}");
        }
        assert!(is_interface(&"i".repeat(15)) && !is_interface(&"i".repeat(16)));
        assert!(!is_interface("") && !is_interface("a/b") && !is_interface("a b"));
    }

    #[test]
    fn an_instruction_has_at_most_128_tasks_and_periods_of_a_tenth_of_a_second_to_an_hour() {
        type Row = (u32, usize, u32, &'static [&'static str], Option<&'static str>);
        let fault = |count: usize, period_ms: u32, suppressed: &[&str]| {
            let instruction = Instruction {
                number: 1,
                tasks: (0..count).map(|number| (format!("task-{number}"), digest(1.0))).collect(),
                suppression: Some(Suppression {
                    tasks: suppressed.iter().map(ToString::to_string).collect(),
                    ..Suppression::default()
                }),
                seed: "0".repeat(32),
                period_ms,
            };
            instruction.check().err().map(|fault| fault.field)
        };
        let rows: [Row; 8] = [
            (1, 128, 100, &["task-1"], None),
            (2, 129, 100, &[], Some("tasks")),
            (3, 0, 99, &[], Some("period_ms")),
            (4, 0, 3_600_000, &[], None),
            (5, 0, 3_600_001, &[], Some("period_ms")),
            (6, 0, 100, &["task-1", "TASK"], Some("suppression")),
            (7, 0, 100, &["t"; 128], None),
            (8, 0, 100, &["t"; 129], Some("suppression")),
        ];
        for (row, count, period_ms, suppressed, want) in rows {
            assert_eq!(fault(count, period_ms, suppressed), want, "row {row}");
        }
    }

    #[test]
    fn numbers_of_a_task_are_taken_up_to_both_ends_of_their_bounds() {
        let traffic = |slice_ms, top| What::Traffic { slice_ms, top };
        let marking = |colour_bit, delay_bit, block_ms| What::Marking { colour_bit, delay_bit, block_ms };
        let stamp = |interval_ns, length| What::Stamp {
            target: "b".into(),
            interval_ns,
            length,
            peer: None,
            version: None,
        };
        let volume = |prefix, keys| What::Volume { by: Vec::new(), prefix: Some(prefix), keys };
        let rows: &[(u32, What, Option<&str>)] = &[
            (1, traffic(1, MOST_TALKERS), None),
            (2, traffic(3_600_000, MOST_TALKERS + 1), Some("top")),
            (3, traffic(0, 1), Some("slice_ms")),
            (4, traffic(3_600_001, 1), Some("slice_ms")),
            (5, marking(5, Some(4), 10), None),
            (6, marking(6, None, 10), Some("colour_bit")),
            (7, marking(0, Some(5), 3_600_000), None),
            (8, marking(0, Some(6), 10), Some("delay_bit")),
            (9, marking(0, None, 9), Some("block_ms")),
            (10, marking(0, None, 3_600_001), Some("block_ms")),
            (11, stamp(10_000, 65_487), None),
            (12, stamp(60_000_000_000, 65_488), Some("length")),
            (13, stamp(9_999, 44), Some("interval_ns")),
            (14, stamp(60_000_000_001, 44), Some("interval_ns")),
            (15, volume((32, 128), MOST_KEYS), None),
            (16, volume((32, 129), 1), Some("prefix")),
            (17, volume((24, 64), MOST_KEYS + 1), Some("keys")),
            (18, What::Rtt { flows: 0 }, Some("flows")),
            (19, What::Rtt { flows: MOST_FLOWS }, None),
            (20, What::Capacity { sources: MOST_SOURCES }, None),
        ];
        for (row, what, fault) in rows {
            assert_eq!(what.check().err().map(|fault| fault.field), *fault, "row {row}");
        }
    }

    #[test]
    fn a_measurement_is_one_that_there_is_with_at_most_64_options_of_a_line_each() {
        let fault = |command: &str, options: usize, value: &str| {
            let options = (0..options).map(|number| (format!("o{number}"), value.to_owned())).collect();
            let what = What::Measure { command: command.into(), target: "b".into(), options, peer: None };
            what.check().err().map(|fault| fault.field)
        };
        assert_eq!(fault("tcp", 64, ""), None);
        assert_eq!(fault("tcp", 65, ""), Some("options"));
        assert_eq!(fault("ping", 0, ""), Some("command"));
        assert_eq!(fault("tcp", 1, "two\nlines"), Some("options"));
        assert_eq!(fault("tcp", 1, &"v".repeat(255)), None);
        assert_eq!(fault("tcp", 1, &"v".repeat(256)), Some("options"));
    }

    #[test]
    fn a_schedule_is_at_most_a_week_apart_and_spread_over_at_most_a_day() {
        let fault = |every_ms, spread_ms, from| {
            let schedule = Schedule { every_ms, spread_ms, from, until: Some(5) };
            schedule.check().err().map(|fault| fault.field)
        };
        assert_eq!((fault(100, 86_400_000, None), fault(604_800_000, 0, Some(4))), (None, None));
        assert_eq!((fault(99, 0, None), fault(604_800_001, 0, None)), (Some("every_ms"), Some("every_ms")));
        assert_eq!(
            (fault(100, 86_400_001, None), fault(100, 0, Some(6))),
            (Some("spread_ms"), Some("until"))
        );
    }

    #[test]
    fn a_batch_is_neither_empty_nor_too_long() {
        let batch =
            |ipfix, report| FromProbe::Batch { sequence: 1, ipfix, report, selections: BTreeMap::new() };
        assert!(batch(0, 1).check().is_ok() && batch(MAX_BATCH, 0).check().is_ok());
        assert!(batch(0, 0).check().is_err() && batch(MAX_BATCH, 1).check().is_err());
        assert!(batch(u32::MAX, u32::MAX).check().is_err());
    }

    #[test]
    fn a_batch_says_whose_its_sightings_are() {
        let selections: BTreeMap<_, _> = [("delay".to_owned(), 3), ("delay.v6".to_owned(), u64::MAX)].into();
        let batch = FromProbe::Batch { sequence: 9, ipfix: 5, report: 0, selections };
        let body = &frame::emit(&batch).unwrap()[4..];
        assert_eq!(FromProbe::parse(body), Ok(batch));
    }

    #[test]
    fn types_of_a_later_version_are_told_from_damage() {
        let parse = |text: &str| FromProbe::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(parse(r#"{"type":"sing"}"#), MessageError::Frame(FrameError::UnknownType(_))));
        assert!(matches!(parse(r#"{"type":"status"}"#), MessageError::Frame(FrameError::BadFields(_))));
        let batch = r#"{"type":"batch","sequence":0,"ipfix":1,"report":0}"#;
        assert_eq!(parse(batch).to_string(), "a message is out of bounds: 'sequence' has to be 1 at least");
    }
}

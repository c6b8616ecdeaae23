//! What one exporter said so far, and the records in what it says next (RFC 7011 §8, §9).
//!
//! A [`Reader`] belongs to one transport session: a TCP connection, or one address and port that
//! datagrams come from. Templates hold for one observation domain of one session; over datagrams
//! they expire when they are not repeated. Data that no template is known for is counted and left:
//! the next repetition of the templates mends it.
//!
//! An exporter is not trusted. Domains, templates and fields are bounded in all, and what comes
//! beyond the bound is refused while what was there before goes on working: who floods a session
//! with templates harms itself alone.

mod counts;
mod record;
mod sequence;

use std::collections::BTreeMap;

use netaware_units::{Span, Wall};

use self::sequence::{Sequence, Standing};
use super::message::{self, FIRST_DATA_SET, Header, MessageError, OPTIONS_TEMPLATE_SET, Set, TEMPLATE_SET};
use super::template::{self, Announcement, Template};
use super::time;

pub use counts::Counts;
pub use record::{DataRecord, Fields, unsigned};

/// How messages come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP, TLS or a file: in order and whole; templates hold until they are withdrawn.
    Stream,
    /// UDP: templates are repeated and expire; withdrawals mean nothing (RFC 7011 §8.4).
    Datagrams,
}

/// What one session may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Observation domains.
    pub domains: usize,
    /// Templates of all domains.
    pub templates: usize,
    /// Fields of all templates; each takes 8 bytes.
    pub fields: usize,
    /// A template over datagrams is forgotten when it was not repeated for so long.
    pub lifetime: Span,
}

impl Default for Limits {
    fn default() -> Self {
        // Three times the half hour after which quiet exporters commonly repeat (RFC 7011 §8.4).
        Self { domains: 16, templates: 2048, fields: 32_768, lifetime: Span::from_secs(3 * 1800) }
    }
}

/// State of one session.
#[derive(Debug, Clone)]
pub struct Reader {
    transport: Transport,
    limits: Limits,
    domains: BTreeMap<u32, Domain>,
    fields: usize,
    templates: usize,
    counts: Counts,
    /// Next look for expired templates.
    sweep_at: Wall,
}

#[derive(Debug, Clone, Default)]
struct Domain {
    templates: BTreeMap<u16, Known>,
    sequence: Sequence,
}

#[derive(Debug, Clone)]
struct Known {
    template: Template,
    /// Bytes of every record, where all fields are of fixed length.
    fixed: Option<usize>,
    repeated_at: Wall,
}

impl Reader {
    /// A session that has said nothing yet.
    pub fn new(transport: Transport) -> Self {
        Self::with_limits(transport, Limits::default())
    }

    /// With other bounds than the usual ones.
    pub fn with_limits(transport: Transport, limits: Limits) -> Self {
        Self {
            transport,
            limits,
            domains: BTreeMap::new(),
            fields: 0,
            templates: 0,
            counts: Counts::default(),
            sweep_at: Wall(i64::MIN),
        }
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Templates known at present.
    pub fn templates(&self) -> usize {
        self.templates
    }

    /// Reads one whole message that came at `now` and shows its data records in order.
    ///
    /// # Errors
    /// It is no message of this protocol, or a set in it has an impossible length; records before
    /// that set were shown.
    pub fn read(
        &mut self,
        now: Wall,
        message: &[u8],
        see: &mut dyn FnMut(&DataRecord<'_>),
    ) -> Result<(), MessageError> {
        let read = self.take(now, message, see);
        self.counts.messages_bad += u64::from(read.is_err());
        read
    }

    fn take(
        &mut self,
        now: Wall,
        message: &[u8],
        see: &mut dyn FnMut(&DataRecord<'_>),
    ) -> Result<(), MessageError> {
        let head = Header::parse(message)?;
        if usize::from(head.length) != message.len() {
            return Err(MessageError::Length(head.length));
        }
        self.sweep(now);
        let Some(standing) = self.standing(&head, message) else {
            return Ok(());
        };
        self.counts.messages += 1;
        let mut inside = Inside { now, head, shown: 0, all_known: true };
        let mut ended = Ok(());
        for set in message::sets(message) {
            match set {
                Ok(set) => self.set(set, &mut inside, see),
                Err(error) => {
                    inside.all_known = false;
                    ended = Err(error);
                }
            }
        }
        self.counts.records += u64::from(inside.shown);
        if let Some(domain) = self.domains.get_mut(&head.domain) {
            let came_late = domain.sequence.advance(standing, &head, inside.shown, inside.all_known);
            self.counts.missing = self.counts.missing.saturating_sub(came_late);
        }
        ended
    }

    /// Where the message stands among the others of its domain; `None`: it is not to be used.
    fn standing(&mut self, head: &Header, message: &[u8]) -> Option<Standing> {
        if !self.domains.contains_key(&head.domain) && self.domains.len() >= self.limits.domains {
            self.counts.domains_refused += 1;
            return None;
        }
        let standing = self.domains.entry(head.domain).or_default().sequence.judge(head, message);
        match standing {
            Standing::Next => {}
            Standing::AfterGap(missing) => self.counts.missing += u64::from(missing),
            Standing::Late => self.counts.late += 1,
            Standing::Anew => self.counts.restarts += 1,
            Standing::Duplicate => self.counts.duplicates += 1,
            Standing::Replay => self.counts.replays += 1,
        }
        (!matches!(standing, Standing::Duplicate | Standing::Replay)).then_some(standing)
    }

    fn set(&mut self, set: Set<'_>, inside: &mut Inside, see: &mut dyn FnMut(&DataRecord<'_>)) {
        match set.id {
            TEMPLATE_SET | OPTIONS_TEMPLATE_SET => {
                for announced in template::announcements(set.id, set.body) {
                    match announced {
                        Ok(announcement) => self.learn(inside, set.id, announcement),
                        Err(_) => self.counts.templates_bad += 1,
                    }
                }
            }
            FIRST_DATA_SET.. => self.data(set, inside, see),
            _ => self.counts.sets_reserved += 1,
        }
    }

    fn data(&mut self, set: Set<'_>, inside: &mut Inside, see: &mut dyn FnMut(&DataRecord<'_>)) {
        let known = self.domains.get(&inside.head.domain).and_then(|domain| domain.templates.get(&set.id));
        let Some(known) = known else {
            self.counts.sets_unknown += 1;
            inside.all_known = false;
            return;
        };
        let exported_at = time::from_seconds(inside.head.exported_at.into());
        let shortest = known.fixed.unwrap_or_else(|| known.template.shortest());
        let mut left = set.body;
        // What is shorter than any record is padding.
        while left.len() >= shortest {
            let length = known.fixed.or_else(|| record::length(&known.template, left));
            let Some((bytes, rest)) = length.and_then(|length| left.split_at_checked(length)) else {
                self.counts.records_bad += 1;
                inside.all_known = false;
                return;
            };
            left = rest;
            inside.shown += 1;
            see(&DataRecord { domain: inside.head.domain, exported_at, template: &known.template, bytes });
        }
    }

    fn learn(&mut self, inside: &Inside, set: u16, announcement: Announcement) {
        let Some(domain) = self.domains.get_mut(&inside.head.domain) else { return };
        match announcement {
            Announcement::Template(template) => {
                let before = domain.templates.get(&template.id).map(|known| &known.template);
                let freed = before.map_or(0, |template| template.fields.len());
                let room = self.fields - freed + template.fields.len() <= self.limits.fields
                    && (before.is_some() || self.templates < self.limits.templates);
                if !room {
                    self.counts.templates_refused += 1;
                    return;
                }
                self.counts.templates += 1;
                self.counts.templates_changed += u64::from(before.is_some_and(|before| *before != template));
                self.templates += usize::from(before.is_none());
                self.fields = self.fields - freed + template.fields.len();
                domain.templates.insert(template.id, Known::new(template, inside.now));
            }
            // Over datagrams a withdrawal may overtake data: nobody may send one, so it is ignored.
            Announcement::Withdrawal(_) | Announcement::WithdrawAll
                if self.transport == Transport::Datagrams =>
            {
                self.counts.templates_bad += 1;
            }
            Announcement::Withdrawal(id) => {
                let gone = domain.templates.remove(&id);
                let forgotten = gone.map_or((0, 0), |known| (1, known.template.fields.len()));
                self.release(forgotten, |counts| &mut counts.templates_withdrawn);
            }
            Announcement::WithdrawAll => {
                let forgotten = domain.forget(|known| known.template.set() == set);
                self.release(forgotten, |counts| &mut counts.templates_withdrawn);
            }
        }
    }

    fn release(&mut self, (templates, fields): (usize, usize), counter: fn(&mut Counts) -> &mut u64) {
        self.templates -= templates;
        self.fields -= fields;
        *counter(&mut self.counts) += templates as u64;
    }

    /// Forgets what was not repeated; looks ten times in a lifetime, not with every message.
    fn sweep(&mut self, now: Wall) {
        if self.transport == Transport::Stream || now < self.sweep_at {
            return;
        }
        self.sweep_at = Wall(now.0.saturating_add(self.limits.lifetime.nanos() / 10));
        let oldest = now.0.saturating_sub(self.limits.lifetime.nanos());
        let mut forgotten = (0, 0);
        for domain in self.domains.values_mut() {
            let (templates, fields) = domain.forget(|known| known.repeated_at.0 < oldest);
            forgotten = (forgotten.0 + templates, forgotten.1 + fields);
        }
        self.release(forgotten, |counts| &mut counts.templates_expired);
    }
}

/// What is known of the message being read.
struct Inside {
    now: Wall,
    head: Header,
    shown: u32,
    /// Whether all its data records could be counted.
    all_known: bool,
}

impl Domain {
    /// Number of templates and fields that are no longer there.
    fn forget(&mut self, which: impl Fn(&Known) -> bool) -> (usize, usize) {
        let mut forgotten = (0, 0);
        self.templates.retain(|_, known| {
            let stays = !which(known);
            if !stays {
                forgotten = (forgotten.0 + 1, forgotten.1 + known.template.fields.len());
            }
            stays
        });
        forgotten
    }
}

impl Known {
    fn new(template: Template, now: Wall) -> Self {
        let varies = template.fields.iter().any(|field| field.length == template::VARIABLE);
        let fixed = (!varies).then(|| template.shortest());
        Self { template, fixed, repeated_at: now }
    }
}

#[cfg(test)]
mod tests;

//! Policies: rules as a text, or a function of the program.

use std::ffi::{c_char, c_int, c_void};

use netaware_record::IpVersion;
use netaware_stream::datagram::UnfitRules;
use netaware_stream::{Callback, Choice, Evidence, Rules, VersionEvidence};

use crate::calls::{NA_IPV4, NA_IPV6, guarded, invalid, text};
use crate::error::Failure;
use crate::status::{micros, number};
use crate::table::{self, Carries, lock, unfit};

/// What a callback of a policy returns to stay where it is; NA_IPV4 and NA_IPV6 for going there.
pub const NA_KEEP: c_int = 0;

/// What is known of one version since the last switch: medians of the last observations.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NaVersionEvidence {
    /// Whether it can be used now.
    pub up: c_int,
    /// Observations behind the figures.
    pub observations: c_int,
    /// Round trip, microseconds; -1 where it is not known.
    pub rtt_us: i64,
    /// What it delivers or would, bit/s; -1 where it is not known, and of datagrams.
    pub goodput_bps: i64,
    /// Share of packets lost, 0 to 1; -1 where it is not known.
    pub loss: f64,
}

/// What a callback of a policy decides by.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NaEvidence {
    /// Where this direction goes: 4 or 6.
    pub present: c_int,
    /// Where the rules would go now, 4 or 6; 0 where they would stay.
    pub rules_say: c_int,
    /// Of IPv4.
    pub ipv4: NaVersionEvidence,
    /// Of IPv6.
    pub ipv6: NaVersionEvidence,
}

/// A program's own policy: NA_KEEP, NA_IPV4 or NA_IPV6; anything else is NA_KEEP. The evidence is
/// the library's and good until it returns. It is called on a thread of the library, see
/// na_policy_callback.
pub type NaDecide = Option<unsafe extern "C" fn(evidence: *const NaEvidence, user: *mut c_void) -> c_int>;

/// Switches by rules from now on: the text of a policy file, or NULL for no longer. Also before
/// connecting; of a listening stream it is for those that it accepts from then on. Datagrams have
/// no metric goodput. 0, or -1.
///
/// # Safety
/// `rules` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_policy(stream: c_int, rules: *const c_char) -> c_int {
    guarded(|| {
        let rules = if rules.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            let rules = unsafe { text(rules) }?;
            Some(rules.parse::<Rules>().map_err(|why| invalid(&why.to_string()))?)
        };
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        if entry.carries == Carries::Datagrams {
            UnfitRules::check(rules.as_ref()).map_err(unfit)?;
        }
        entry.options.policy = rules;
        entry.apply_rules()?;
        Ok(0)
    })
}

/// Lets a function of the program decide from now on, or with NULL the rules again; what is looked
/// at, how often and at what cost is as na_policy has it. Also before connecting or listening; of a
/// listening stream it is for those that it accepts from then on.
///
/// It is called on a thread of the library that blocks all signals, for one stream never twice at
/// once, when there is something new and no switch is under way. It may call anything that does not
/// wait, also na_close and this; it must not block, and not leave by longjmp or an exception. When
/// this returns, or na_close, the function before is not called any more for that stream, unless it
/// is the caller; so its `user` can be freed then. 0, or -1.
///
/// # Safety
/// `decide` can be called from any thread with `user` until it is replaced or the stream is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_policy_callback(stream: c_int, decide: NaDecide, user: *mut c_void) -> c_int {
    guarded(|| {
        let user = User(user);
        let callback = decide.map(|decide| {
            Callback::new(move |evidence| {
                let evidence = shown(evidence);
                // SAFETY: the caller's promise; the evidence outlives the call.
                let said = unsafe { decide(&raw const evidence, user.get()) };
                match said {
                    NA_IPV4 => Choice::Use(IpVersion::V4),
                    NA_IPV6 => Choice::Use(IpVersion::V6),
                    _ => Choice::Keep,
                }
            })
        });
        let entry = table::entry(stream)?;
        let what = {
            let mut entry = lock(&entry);
            entry.callback.clone_from(&callback);
            entry.what.clone()
        };
        // Not while it is locked: the one that is running may want it.
        what.set_callback(callback);
        Ok::<c_int, Failure>(0)
    })
}

/// What the program wants to be given back.
#[derive(Clone, Copy)]
struct User(*mut c_void);

impl User {
    fn get(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: it is only given back to the program, which has promised that its function may have it on
// any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

fn shown(evidence: &Evidence) -> NaEvidence {
    let version = |of: &VersionEvidence| NaVersionEvidence {
        up: of.up.into(),
        observations: of.observations as c_int,
        rtt_us: micros(of.round_trip),
        goodput_bps: of.goodput.map_or(-1, |rate| i64::try_from(rate.0).unwrap_or(i64::MAX)),
        loss: of.loss.unwrap_or(-1.0),
    };
    NaEvidence {
        present: number(evidence.present),
        rules_say: evidence.rules_say.map_or(0, number),
        ipv4: version(&evidence.v4),
        ipv6: version(&evidence.v6),
    }
}

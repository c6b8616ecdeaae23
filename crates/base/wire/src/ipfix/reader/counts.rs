//! What came from exporters, by what was wrong with it.

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What came, and what was wrong with it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Each with its name, for metrics.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// Adds what came to a session between two looks at it. [`Self::missing`] can have
            /// become less: what was thought lost came late.
            pub fn add_change(&mut self, before: &Self, now: &Self) {
                $(self.$name = self.$name.wrapping_add(now.$name.wrapping_sub(before.$name));)*
            }
        }
    };
}

counts! {
    /// Messages taken.
    messages,
    /// Data records handed out, those of options included.
    records,
    /// Templates learnt or repeated.
    templates,
    /// Templates that came to mean something else without a withdrawal; the new meaning holds.
    templates_changed,
    /// Templates withdrawn.
    templates_withdrawn,
    /// Templates not taken because there was no room.
    templates_refused,
    /// Templates forgotten because they were not repeated.
    templates_expired,
    /// Templates that no record can look like.
    templates_bad,
    /// Sets of data without a template; their records are lost.
    sets_unknown,
    /// Sets with the reserved ids 0, 1 and 4 to 255.
    sets_reserved,
    /// Records that their set ends within; the set is left there.
    records_bad,
    /// Messages with a wrong head or with a set of impossible length; what came before that set was
    /// used.
    messages_bad,
    /// Messages of a domain that there was no room for.
    domains_refused,
    /// Records that never came, by the sequence numbers; too few while sets are unknown, as nobody
    /// can count their records.
    missing,
    /// Messages that came after younger ones; used.
    late,
    /// Messages that had come already; not used.
    duplicates,
    /// Messages older than what came last, that fill no gap; not used.
    replays,
    /// Times that an exporter began to count anew.
    restarts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_sessions_follow_what_came_late() {
        let mut sum = Counts::default();
        let [none, lost, late] =
            [0, 5, 2].map(|missing| Counts { missing, messages: 7, ..Counts::default() });
        sum.add_change(&none, &lost);
        sum.add_change(&lost, &late);
        assert_eq!((sum.missing, sum.messages), (2, 0));
        assert!(sum.named().contains(&("missing", 2)));
    }
}

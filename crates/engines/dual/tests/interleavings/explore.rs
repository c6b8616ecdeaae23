//! Breadth first through all states, and back from the final ones.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// Something that can go on in several ways.
pub(crate) trait Steps: Clone + Hash {
    /// One way.
    type Act: Copy + Debug;
    /// What can happen now; empty where nothing is left to do.
    fn acts(&self) -> Vec<Self::Act>;
    /// What it then is. Panics where a promise is broken.
    fn after(&self, act: Self::Act) -> Self;
    /// What does not hold, where nothing is left to do.
    fn fault_at_end(&self) -> Option<String>;
}

/// How far it went.
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) last: usize,
}

/// Visits every state once. Two states are held to be one where 128 bits of them agree.
///
/// # Panics
/// Where a promise is broken, or from some state no final one can be reached.
pub(crate) fn explore<S: Steps>(first: S) -> Explored {
    let mut known = HashMap::from([(name(&first), 0_u32)]);
    let mut into: Vec<Vec<u32>> = vec![Vec::new()];
    let mut how: Vec<Option<(u32, S::Act)>> = vec![None];
    let mut last = Vec::new();
    // Only the states of the front are kept whole.
    let mut front = vec![(0_u32, first)];
    while !front.is_empty() {
        let mut ahead = Vec::new();
        for (at, state) in front {
            let acts = state.acts();
            if acts.is_empty() {
                let fault = state.fault_at_end();
                assert_eq!(fault, None, "after {:#?}", way(&how, at));
                last.push(at);
            }
            for act in acts {
                let next = state.after(act);
                let new = into.len() as u32;
                let to = match known.entry(name(&next)) {
                    Entry::Occupied(seen) => *seen.get(),
                    Entry::Vacant(unseen) => {
                        unseen.insert(new);
                        into.push(Vec::new());
                        how.push(Some((at, act)));
                        ahead.push((new, next));
                        new
                    }
                };
                into[to as usize].push(at);
            }
        }
        front = ahead;
    }
    let ending = reach_back(&into, &last);
    assert_eq!(ending, into.len(), "from some states there is no way to the end");
    Explored { states: into.len(), last: last.len() }
}

/// The acts that led there, in order.
fn way<A: Copy>(how: &[Option<(u32, A)>], mut at: u32) -> Vec<A> {
    let mut acts = Vec::new();
    while let Some((before, act)) = how[at as usize] {
        acts.push(act);
        at = before;
    }
    acts.reverse();
    acts
}

fn reach_back(into: &[Vec<u32>], last: &[u32]) -> usize {
    let mut reached = vec![false; into.len()];
    let mut open: Vec<u32> = last.to_vec();
    let mut count = 0;
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at as usize], true) {
            count += 1;
            open.extend(&into[at as usize]);
        }
    }
    count
}

fn name<S: Hash>(state: &S) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        state.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    (half(0) << 64) | half(1)
}

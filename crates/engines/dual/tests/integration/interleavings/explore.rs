//! Depth first through all states, each once.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash};

use super::name::{Given, Name, name};

/// Something that can go on in several ways.
pub(crate) trait Steps: Clone + Hash {
    /// One way.
    type Act: Copy + Debug;
    /// What can happen now; empty where nothing is left to do.
    fn acts(&self) -> Vec<Self::Act>;
    /// What it then is. Panics where a promise is broken.
    fn after(&self, act: Self::Act) -> Self;
    /// Where nothing is left to do: what it has come to, or what does not hold.
    fn end(&self) -> Result<Name, String>;
}

/// How far it went.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    /// Acts on the longest way.
    pub(crate) longest: usize,
    pub(crate) finals: HashSet<Name>,
}

/// States by name alone: two are held to be one where 128 bits of them agree, which among 10⁹
/// states happens by chance once in 10²⁰ such walks.
type Known = HashSet<Name, BuildHasherDefault<Given>>;

/// A state on the way, and what has not been tried there.
struct Stop<S: Steps> {
    state: S,
    name: Name,
    open: Vec<S::Act>,
    /// What led on from here.
    taken: Option<S::Act>,
}

impl<S: Steps> Stop<S> {
    fn new(state: S, name: Name) -> Self {
        let open = state.acts();
        Self { state, name, open, taken: None }
    }
}

/// Visits every state once.
///
/// # Errors
/// How a final state was reached in which something does not hold, or a state from which it can go
/// on for ever.
///
/// # Panics
/// Where a promise is broken on the way; what led there is printed.
pub(crate) fn explore<S: Steps>(first: S) -> Result<Explored, String> {
    let mut explored = Explored::default();
    let mut known = Known::default();
    let mut on_way = Known::default();
    let mut way: Way<S> = Way(Vec::new());
    let start = name(&first);
    known.insert(start);
    on_way.insert(start);
    way.0.push(Stop::new(first, start));
    while let Some(stop) = way.0.last_mut() {
        if let Some(act) = stop.open.pop() {
            stop.taken = Some(act);
            let next = stop.state.after(act);
            let name = name(&next);
            explored.steps += 1;
            if known.insert(name) {
                let next = Stop::new(next, name);
                if next.open.is_empty() {
                    match next.state.end() {
                        Ok(name) => _ = explored.finals.insert(name),
                        Err(fault) => return Err(format!("{fault}\nafter {way:#?}")),
                    }
                }
                on_way.insert(name);
                way.0.push(next);
                explored.longest = explored.longest.max(way.0.len());
            } else if on_way.contains(&name) {
                return Err(format!("it can go on for ever\nafter {way:#?}"));
            }
        } else if let Some(done) = way.0.pop() {
            on_way.remove(&done.name);
        }
    }
    explored.states = known.len();
    Ok(explored)
}

/// From the first state on.
struct Way<S: Steps>(Vec<Stop<S>>);

impl<S: Steps> Debug for Way<S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().filter_map(|stop| stop.taken)).finish()
    }
}

impl<S: Steps> Drop for Way<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("after {self:#?}");
        }
    }
}

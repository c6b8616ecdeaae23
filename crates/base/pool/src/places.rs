//! A pool that several threads share.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pool::{Full, Id, Limits, Pool, Standing};

/// A pool that several threads share; cloned freely.
#[derive(Clone)]
pub struct Places(Arc<Mutex<Pool<OnEviction>>>);

/// Tells a holder that its place was taken away.
type OnEviction = Box<dyn FnOnce() + Send>;

/// A place that is held; free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    id: Id,
}

impl Places {
    /// Makes a pool of which no place is taken.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Pool::new(limits))))
    }

    /// Takes a place. `on_eviction` is called once if it is taken away, from the thread that enters
    /// in its stead; it has to end what holds the place and must not wait for anything.
    ///
    /// # Errors
    /// There is no place.
    pub fn enter(
        &self,
        from: IpAddr,
        standing: Standing,
        on_eviction: impl FnOnce() + Send + 'static,
    ) -> Result<Place, Full> {
        let entered = self.lock().enter(from, standing, Box::new(on_eviction));
        let entered = entered.map_err(|(full, _)| full)?;
        if let Some(tell) = entered.evicted {
            // The lock is free here, so that whoever is told may drop its place.
            tell();
        }
        Ok(Place { places: self.clone(), id: entered.id })
    }

    /// Returns how many places are taken.
    pub fn taken(&self) -> usize {
        self.lock().len()
    }

    /// Every change of a pool is one call, so that a thread that panicked left nothing half done.
    fn lock(&self) -> MutexGuard<'_, Pool<OnEviction>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Keeps the place from being taken away: its holder has proven that it knows the key.
    pub fn prove(&self) {
        self.places.lock().prove(self.id);
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("taken", &self.taken()).finish()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let holder = self.places.lock().leave(self.id);
        // Dropped unlocked, since what it holds may have places of its own.
        drop(holder);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::pool::AtShare;

    #[test]
    fn a_place_is_free_when_it_is_dropped_and_its_loss_is_told_at_once() {
        let limits = Limits { all: 2, reserved: 0, per_host: 1, per_site: 1, at_share: AtShare::Evict };
        let (places, told) = (Places::new(limits), Arc::new(AtomicUsize::new(0)));
        let address = IpAddr::from([192, 0, 2, 1]);
        let enter = || {
            let told = told.clone();
            places.enter(address, Standing::Unproven, move || {
                told.fetch_add(1, Ordering::Relaxed);
            })
        };
        let first = enter().unwrap();
        let second = enter().unwrap();
        assert_eq!((told.load(Ordering::Relaxed), places.taken()), (1, 1));
        drop(first);
        assert_eq!(places.taken(), 1, "it was taken away before");
        second.prove();
        let third = enter().unwrap();
        assert_eq!(told.load(Ordering::Relaxed), 1, "who proved a key keeps the place");
        assert_eq!(enter().map(|_| ()), Ok(()));
        assert_eq!(told.load(Ordering::Relaxed), 2, "the third made room for the fourth");
        drop((second, third));
        assert_eq!(places.taken(), 0);
    }
}

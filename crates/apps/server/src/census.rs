//! How many are here, in all and from each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::network::household;

/// Counts places of one kind; cloned freely.
#[derive(Debug, Clone)]
pub(crate) struct Census(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_per_household: usize,
    /// Holds only households that are here, so `most` bounds it.
    here: Mutex<Here>,
}

#[derive(Debug, Default)]
struct Here {
    all: usize,
    by_household: HashMap<IpAddr, usize>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Everywhere(usize),
    ForThisAddress(usize),
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    census: Census,
    household: IpAddr,
}

impl Census {
    pub(crate) fn new(most: usize, most_per_household: usize) -> Self {
        Self(Arc::new(Inner { most, most_per_household, here: Mutex::default() }))
    }

    pub(crate) fn enter(&self, address: IpAddr) -> Result<Place, Full> {
        let household = household(address);
        let mut here = self.0.here.lock().unwrap_or_else(PoisonError::into_inner);
        let Here { all, by_household } = &mut *here;
        if *all >= self.0.most {
            return Err(Full::Everywhere(self.0.most));
        }
        let neighbours = by_household.get(&household).copied().unwrap_or(0);
        if neighbours >= self.0.most_per_household {
            return Err(Full::ForThisAddress(self.0.most_per_household));
        }
        *all += 1;
        by_household.insert(household, neighbours + 1);
        Ok(Place { census: self.clone(), household })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = self.census.0.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.all = here.all.saturating_sub(1);
        if let Some(count) = here.by_household.get_mut(&self.household) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                here.by_household.remove(&self.household);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_by_address_and_given_back() {
        let census = Census::new(3, 2);
        let (a, b): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let first = census.enter(a).unwrap();
        let _second = census.enter(a).unwrap();
        assert_eq!(census.enter(a).unwrap_err(), Full::ForThisAddress(2));
        let _third = census.enter(b).unwrap();
        assert_eq!(census.enter(b).unwrap_err(), Full::Everywhere(3));
        drop(first);
        assert!(census.enter(a).is_ok());
        assert_eq!(census.0.here.lock().unwrap().by_household.len(), 2);
    }
}

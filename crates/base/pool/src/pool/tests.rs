use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { all: 4, reserved: 1, per_host: 2, per_site: 3, at_share: AtShare::Evict };

fn v4(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

/// An address of host `host` at site `site`.
fn v6(site: u16, host: u16) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, site, host, 0, 0, 0, 1])
}

/// A pool whose holders are numbers.
fn pool(limits: Limits) -> Pool<u32> {
    Pool::new(limits)
}

fn stranger(pool: &mut Pool<u32>, from: IpAddr, holder: u32) -> Result<Option<u32>, Full> {
    pool.enter(from, Standing::Unproven, holder).map(|it| it.evicted).map_err(|(full, _)| full)
}

fn owner(pool: &mut Pool<u32>, from: IpAddr, holder: u32) -> Result<Option<u32>, Full> {
    pool.enter(from, Standing::Proven, holder).map(|it| it.evicted).map_err(|(full, _)| full)
}

#[test]
fn a_silent_address_does_not_keep_its_neighbours_out() {
    let mut pool = pool(LIMITS);
    assert_eq!(stranger(&mut pool, v4(1), 1), Ok(None));
    assert_eq!(stranger(&mut pool, v4(1), 2), Ok(None));
    assert_eq!(stranger(&mut pool, v4(1), 3), Ok(Some(1)), "its own oldest place");
    assert_eq!(stranger(&mut pool, v4(2), 4), Ok(None));
    assert_eq!(stranger(&mut pool, v4(3), 5), Ok(Some(2)), "of the address that holds two");
    assert_eq!(pool.len(), 3, "the fourth is reserved");
}

#[test]
fn a_site_of_many_networks_has_one_share() {
    let mut pool = pool(Limits { all: 100, ..LIMITS });
    for host in 0..3 {
        assert_eq!(stranger(&mut pool, v6(1, host), u32::from(host)), Ok(None));
    }
    assert_eq!(stranger(&mut pool, v6(1, 9), 9), Ok(Some(0)), "one address for each of its networks");
    assert_eq!(stranger(&mut pool, v6(2, 0), 10), Ok(None));
}

#[test]
fn a_site_with_one_place_keeps_it_while_another_holds_two() {
    let mut pool = pool(Limits { all: 5, reserved: 0, per_host: 5, per_site: 5, at_share: AtShare::Evict });
    assert_eq!(stranger(&mut pool, v4(1), 0), Ok(None));
    for holder in 1..1000 {
        stranger(&mut pool, v4(2), holder).unwrap();
    }
    assert_eq!(pool.held_by_host(v4(1)), 1);
    assert_eq!(pool.held_by_host(v4(2)), 4);
}

#[test]
fn who_proved_a_key_finds_a_place_and_keeps_it() {
    let mut pool = pool(LIMITS);
    for n in 1..=3 {
        stranger(&mut pool, v4(n), u32::from(n)).unwrap();
    }
    assert_eq!(owner(&mut pool, v4(9), 10), Ok(None), "the reserved place");
    assert_eq!(owner(&mut pool, v4(9), 11), Ok(Some(1)), "the oldest unproven one");
    assert_eq!(owner(&mut pool, v4(9), 12), Ok(Some(2)));
    assert_eq!(owner(&mut pool, v4(9), 13), Ok(Some(3)));
    assert_eq!(owner(&mut pool, v4(9), 14), Err(Full::Everywhere(4)), "all have proven it");
    assert_eq!(stranger(&mut pool, v4(1), 15), Err(Full::Everywhere(0)));
}

#[test]
fn a_proof_takes_a_place_out_of_the_share() {
    let mut pool = pool(LIMITS);
    let first = pool.enter(v4(1), Standing::Unproven, 1).unwrap().id;
    stranger(&mut pool, v4(1), 2).unwrap();
    pool.prove(first);
    pool.prove(first);
    assert_eq!(pool.held_by_host(v4(1)), 1);
    assert_eq!(stranger(&mut pool, v4(1), 3), Ok(None));
    assert_eq!(pool.leave(first), Some(1));
    assert_eq!(pool.leave(first), None, "once");
    pool.prove(first);
    assert_eq!(pool.len(), 2);
}

#[test]
fn long_held_places_are_refused_rather_than_taken_away() {
    let mut pool = pool(Limits { all: 4, reserved: 0, per_host: 3, per_site: 3, at_share: AtShare::Refuse });
    for holder in 0..3 {
        stranger(&mut pool, v4(1), holder).unwrap();
    }
    assert_eq!(stranger(&mut pool, v4(1), 3), Err(Full::ForThisHost(3)));
    assert_eq!(stranger(&mut pool, v4(2), 4), Ok(None));
    assert_eq!(stranger(&mut pool, v4(3), 5), Ok(Some(0)), "of one that holds three");
    assert_eq!(stranger(&mut pool, v4(4), 6), Ok(Some(1)), "of one that holds two");
    assert_eq!(stranger(&mut pool, v4(5), 7), Err(Full::Everywhere(4)), "everybody holds one");
}

#[test]
fn a_share_of_nothing_refuses_everybody() {
    let mut pool = pool(Limits { per_host: 0, ..LIMITS });
    assert_eq!(stranger(&mut pool, v4(1), 1), Err(Full::ForThisHost(0)));
    let mut pool = self::pool(Limits { all: 0, ..LIMITS });
    assert_eq!(stranger(&mut pool, v4(1), 1), Err(Full::Everywhere(0)));
    assert_eq!(owner(&mut pool, v4(1), 1), Err(Full::Everywhere(0)));
}

/// One operation on a pool; the numbers choose among a few addresses or the places taken so far.
#[derive(Debug, Clone, Copy)]
enum Step {
    Enter(u8, Standing),
    Prove(usize),
    Leave(usize),
}

fn from(n: u8) -> IpAddr {
    match n {
        0 => v4(1),
        1 => v4(2),
        2 => v6(1, 1),
        3 => v6(1, 2),
        _ => v6(2, 1),
    }
}

/// Runs steps on a pool and on a list that is searched from end to end, and compares them.
fn agrees(limits: Limits, steps: &[Step]) {
    let mut pool = Pool::new(limits);
    // Oldest first: number, address, standing.
    let mut list: Vec<(Id, IpAddr, Standing)> = Vec::new();
    let mut given: Vec<Id> = Vec::new();
    for step in steps {
        match *step {
            Step::Enter(n, standing) => {
                let want = plain_victim(limits, &list, from(n), standing);
                match (pool.enter(from(n), standing, given.len()), want) {
                    (Ok(entered), Ok(victim)) => {
                        let victim = victim.map(|at| list.remove(at).0);
                        let evicted = entered.evicted.map(|holder| given[holder]);
                        assert_eq!(evicted, victim, "{steps:?}");
                        list.push((entered.id, from(n), standing));
                        given.push(entered.id);
                    }
                    (Err((full, _)), Err(want)) => assert_eq!(full, want, "{steps:?}"),
                    (got, want) => panic!("{got:?} instead of {want:?}: {steps:?}"),
                }
            }
            Step::Prove(n) if !given.is_empty() => {
                let id = given[n % given.len()];
                pool.prove(id);
                list.iter_mut().filter(|it| it.0 == id).for_each(|it| it.2 = Standing::Proven);
            }
            Step::Leave(n) if !given.is_empty() => {
                let id = given[n % given.len()];
                let was_there = list.iter().any(|it| it.0 == id);
                assert_eq!(pool.leave(id).is_some(), was_there);
                list.retain(|it| it.0 != id);
            }
            Step::Prove(_) | Step::Leave(_) => {}
        }
        holds(limits, &pool, &list);
    }
}

/// The bounds that a pool promises.
fn holds(limits: Limits, pool: &Pool<usize>, list: &[(Id, IpAddr, Standing)]) {
    assert_eq!(pool.len(), list.len());
    assert!(pool.len() <= limits.all);
    let unproven: Vec<IpAddr> = list.iter().filter(|it| it.2 == Standing::Unproven).map(|it| it.1).collect();
    let proven = list.len() - unproven.len();
    assert!(unproven.len() + limits.reserved.max(proven).min(limits.all) <= limits.all);
    for n in 0..5 {
        let of_host = unproven.iter().filter(|it| Host::of(**it) == Host::of(from(n))).count();
        let of_site = unproven.iter().filter(|it| Site::of(**it) == Site::of(from(n))).count();
        assert_eq!(pool.held_by_host(from(n)), of_host);
        assert!(of_host <= limits.per_host && of_site <= limits.per_site);
    }
    assert_eq!(pool.sites.places.len(), pool.hosts.len(), "nothing is kept of who is gone");
}

/// The rules once more, by search: where in the list the place is that a newcomer gets.
fn plain_victim(
    limits: Limits,
    list: &[(Id, IpAddr, Standing)],
    from: IpAddr,
    standing: Standing,
) -> Result<Option<usize>, Full> {
    let unproven: Vec<usize> = (0..list.len()).filter(|at| list[*at].2 == Standing::Unproven).collect();
    let of_site = |site: Site| -> Vec<usize> {
        unproven.iter().copied().filter(|at| Site::of(list[*at].1) == site).collect()
    };
    let of_host = |host: Host| -> Vec<usize> {
        unproven.iter().copied().filter(|at| Host::of(list[*at].1) == host).collect()
    };
    // Most places first; of equals, whoever has the oldest.
    let best = |sets: Vec<Vec<usize>>| sets.into_iter().max_by_key(|set| (set.len(), Reverse(set[0])));
    let oldest_of_site = |site: Site| {
        let hosts = of_site(site).into_iter().map(|at| of_host(Host::of(list[at].1))).collect();
        best(hosts).map(|set| set[0])
    };
    let heaviest = || {
        let sites = unproven.iter().map(|at| of_site(Site::of(list[*at].1))).collect();
        best(sites).map(|set| Site::of(list[set[0]].1))
    };
    if standing == Standing::Proven {
        if list.len() < limits.all {
            return Ok(None);
        }
        return heaviest().and_then(oldest_of_site).map(Some).ok_or(Full::Everywhere(limits.all));
    }
    let (site, host) = (Site::of(from), Host::of(from));
    let evicts = limits.at_share == AtShare::Evict;
    if of_host(host).len() >= limits.per_host {
        let full = Full::ForThisHost(limits.per_host);
        return of_host(host).first().copied().filter(|_| evicts).map(Some).ok_or(full);
    }
    if of_site(site).len() >= limits.per_site {
        let full = Full::ForThisSite(limits.per_site);
        return oldest_of_site(site).filter(|_| evicts).map(Some).ok_or(full);
    }
    let proven = list.len() - unproven.len();
    let open = limits.all - limits.reserved.max(proven).min(limits.all);
    if unproven.len() < open {
        return Ok(None);
    }
    let most = heaviest().map_or(0, |it| of_site(it).len());
    let own = of_site(site).len();
    let victim = match (evicts, own >= most) {
        (true, true) => oldest_of_site(site),
        (true, false) => heaviest().and_then(oldest_of_site),
        (false, _) if most >= own + 2 => heaviest().and_then(oldest_of_site),
        (false, _) => None,
    };
    victim.map(Some).ok_or(Full::Everywhere(open))
}

/// All sequences of six operations on a small pool, in both kinds of pool.
#[test]
fn every_short_history_agrees_with_a_search_from_end_to_end() {
    let mut all = vec![Step::Prove(0), Step::Leave(0), Step::Leave(1)];
    all.extend((0..4).map(|n| Step::Enter(n, Standing::Unproven)));
    all.push(Step::Enter(0, Standing::Proven));
    let len = 6;
    for at_share in [AtShare::Evict, AtShare::Refuse] {
        let limits = Limits { all: 3, reserved: 1, per_host: 2, per_site: 2, at_share };
        for n in 0..all.len().pow(len) {
            let steps: Vec<Step> = (0..len).map(|digit| all[n / all.len().pow(digit) % all.len()]).collect();
            agrees(limits, &steps);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let standing = prop_oneof![4 => Just(Standing::Unproven), 1 => Just(Standing::Proven)];
    prop_oneof![
        4 => (0_u8..5, standing).prop_map(|(n, standing)| Step::Enter(n, standing)),
        1 => any::<usize>().prop_map(Step::Prove),
        2 => any::<usize>().prop_map(Step::Leave),
    ]
}

proptest! {
    #[test]
    fn long_histories_agree_with_a_search_from_end_to_end(
        steps in prop::collection::vec(step(), 0..80),
        sizes in (0_usize..12, 0_usize..5, 0_usize..6, 0_usize..8),
        evicts: bool,
    ) {
        let (all, reserved, per_host, per_site) = sizes;
        let at_share = if evicts { AtShare::Evict } else { AtShare::Refuse };
        agrees(Limits { all, reserved, per_host, per_site, at_share }, &steps);
    }
}

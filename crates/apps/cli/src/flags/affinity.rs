//! `-A N[,M]`: cores for the threads that move data.

use std::str::FromStr;

/// iperf3 binds its own threads to the first core and the server's to the second. A responder here
/// does not let a stranger choose its cores (its owner does), so the second is accepted and
/// reported as without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affinity {
    pub(crate) local: usize,
    pub(crate) remote: Option<usize>,
}

impl FromStr for Affinity {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let core = |digits: &str| digits.parse().map_err(|_| format!("'{digits}' is no core's number"));
        match text.split_once(',') {
            None => Ok(Self { local: core(text)?, remote: None }),
            Some((local, remote)) => Ok(Self { local: core(local)?, remote: Some(core(remote)?) }),
        }
    }
}

/// Refuses cores that this host does not have: nothing would be bound to them.
pub(crate) fn check(cores: impl IntoIterator<Item = usize>) -> anyhow::Result<()> {
    check_of(netaware_prober::cores_online() as usize, cores)
}

fn check_of(online: usize, cores: impl IntoIterator<Item = usize>) -> anyhow::Result<()> {
    // Where nobody knows how many there are, binding tells.
    let missing = cores.into_iter().find(|core| online > 0 && *core >= online);
    missing.map_or(Ok(()), |core| {
        anyhow::bail!("-A {core}: this host has {online} CPUs, numbered from 0 to {}", online - 1)
    })
}

/// The local core as requests want it; says on stderr what has no effect.
pub(crate) fn local(affinity: Option<Affinity>) -> Vec<usize> {
    if affinity.is_some_and(|a| a.remote.is_some()) {
        eprintln!(
            "note: the responder's owner chooses its cores; only the first number of --cpu-affinity counts"
        );
    }
    affinity.map(|a| a.local).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_this_host_does_not_have_is_refused() {
        assert!(check_of(2, [0, 1]).is_ok() && check_of(0, [99]).is_ok() && check_of(2, []).is_ok());
        let refused = check_of(2, [0, 99]).unwrap_err().to_string();
        assert_eq!(refused, "-A 99: this host has 2 CPUs, numbered from 0 to 1");
    }

    #[test]
    fn one_or_two_cores() {
        assert_eq!("3".parse(), Ok(Affinity { local: 3, remote: None }));
        assert_eq!("0,1".parse(), Ok(Affinity { local: 0, remote: Some(1) }));
        for bad in ["", ",1", "1,", "a", "1,2,3", "-1"] {
            assert!(bad.parse::<Affinity>().is_err(), "{bad}");
        }
    }
}

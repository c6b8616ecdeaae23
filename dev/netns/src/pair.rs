//! Two namespaces and the wire between them.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::bound::pause;
use crate::stale::namespace_name;
use crate::tool::run;
use crate::{IpVersion, NetnsError};

/// Two namespaces joined by a veth pair; see the drawing at the top of the crate.
///
/// Dropping it kills every process left inside (SIGKILL) and removes the namespaces, their links and their files.
#[derive(Debug)]
pub struct Pair {
    left: Side,
    right: Side,
}

/// One namespace of a [`Pair`].
#[derive(Debug)]
pub struct Side {
    namespace: String,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

/// What Ethernet carries by default.
const USUAL_MTU: u32 = 1500;

impl Pair {
    /// A pair with an MTU of 1500. `name` only helps a person who looks at `ip netns`; it need not be unique.
    pub fn new(name: &str) -> Result<Self, NetnsError> {
        Self::with_mtu(name, USUAL_MTU)
    }

    /// A pair whose wire has this MTU in bytes, 1280 (the least that IPv6 allows) to 65535.
    pub fn with_mtu(name: &str, mtu: u32) -> Result<Self, NetnsError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        // Built before the first command runs, so that a failure half-way is cleaned up by `Drop` too.
        let pair = Self {
            left: Side::new(namespace_name(number, name, "left"), 1),
            right: Side::new(namespace_name(number, name, "right"), 2),
        };
        pair.create(mtu)?;
        Ok(pair)
    }

    /// The side that clients usually run in.
    pub fn left(&self) -> &Side {
        &self.left
    }

    /// The side that servers usually run in.
    pub fn right(&self) -> &Side {
        &self.right
    }

    pub(crate) fn sides(&self) -> [&Side; 2] {
        [&self.left, &self.right]
    }

    fn create(&self, mtu: u32) -> Result<(), NetnsError> {
        for side in self.sides() {
            run("ip", &["netns", "add", &side.namespace])?;
        }
        let (left, right, mtu) = (&*self.left.namespace, &*self.right.namespace, mtu.to_string());
        let near = ["link", "add", DEVICE, "netns", left, "mtu", &mtu, "type", "veth"];
        let far = ["peer", "name", DEVICE, "netns", right, "mtu", &mtu];
        run("ip", &[&near[..], &far[..]].concat())?;
        for side in self.sides() {
            side.ip(&["link", "set", "lo", "up"])?;
            side.ip(&["link", "set", DEVICE, "up"])?;
        }
        // Addresses come last: set on a link that is up on both ends, and without duplicate address detection, they
        // can be used at once.
        self.left.configure(&self.right)?;
        self.right.configure(&self.left)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for side in self.sides() {
            side.remove();
        }
    }
}

const DEVICE: &str = "lan";

impl Side {
    fn new(namespace: String, host: u8) -> Self {
        let v4 = Ipv4Addr::new(10, 77, 0, host);
        let v6 = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, host.into());
        Self { namespace, v4, v6 }
    }

    /// IPv4 address of this side.
    pub fn v4(&self) -> Ipv4Addr {
        self.v4
    }

    /// IPv6 address of this side.
    pub fn v6(&self) -> Ipv6Addr {
        self.v6
    }

    /// Address of this side in the version asked for.
    pub fn address(&self, version: IpVersion) -> std::net::IpAddr {
        match version {
            IpVersion::V4 => self.v4.into(),
            IpVersion::V6 => self.v6.into(),
        }
    }

    /// Name of the interface towards the other side.
    pub fn device(&self) -> &'static str {
        DEVICE
    }

    /// Name of the namespace, as `ip netns` lists it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A command that will run inside. `ip netns exec` replaces itself by the program, so the child's process id is
    /// the program's own.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// Runs `ip` inside, for whatever this crate does not wrap: `side.ip(&["link", "set", "lan", "down"])`.
    pub fn ip(&self, arguments: &[&str]) -> Result<String, NetnsError> {
        run("ip", &[&["-netns", &*self.namespace], arguments].concat())
    }

    /// Does something in a thread of its own that is inside, as are the threads that it starts, and the sockets that it makes
    /// stay there.
    ///
    /// # Errors
    /// The namespace cannot be entered, or what `work` says; that it panicked.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let entrance = fs::File::open(PathBuf::from("/run/netns").join(&self.namespace))?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(entrance.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            inside.join().unwrap_or_else(|_| Err(io::Error::other("the thread inside panicked")))
        })
    }

    /// Processes inside.
    pub fn processes(&self) -> Vec<u32> {
        let listed = run("ip", &["netns", "pids", &self.namespace]).unwrap_or_default();
        listed.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    fn configure(&self, other: &Self) -> Result<(), NetnsError> {
        self.ip(&["address", "add", &format!("{}/24", self.v4), "dev", DEVICE])?;
        self.ip(&["address", "add", &format!("{}/64", self.v6), "dev", DEVICE, "nodad"])?;
        self.write_file("hosts", &hosts(other))?;
        // Without name servers, so that an unknown name fails at once instead of asking the real network.
        self.write_file("resolv.conf", "options timeout:1 attempts:1\n")
    }

    /// `ip netns exec` shows these files to the program in place of those in `/etc`.
    fn files(&self) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.namespace)
    }

    fn write_file(&self, name: &str, content: &str) -> Result<(), NetnsError> {
        let path = self.files().join(name);
        let write = || fs::create_dir_all(self.files()).and_then(|()| fs::write(&path, content));
        write().map_err(|source| NetnsError::Write { path: path.clone(), source })
    }

    fn remove(&self) {
        self.kill_processes();
        // Deleting one end deletes both; without it the link would live until the kernel has reaped the namespace.
        // Errors are expected here after a half-finished set-up, and nobody could act on others.
        let _ = self.ip(&["link", "delete", DEVICE]);
        let _ = run("ip", &["netns", "delete", &self.namespace]);
        let _ = fs::remove_dir_all(self.files());
        let _ = fs::remove_dir("/etc/netns");
    }

    /// Repeats, because a process may have forked between the listing and the kill.
    fn kill_processes(&self) {
        const ATTEMPTS: u32 = 100;
        for _ in 0..ATTEMPTS {
            let inside = self.processes();
            if inside.is_empty() {
                return;
            }
            let ids = inside.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            // The shell's own `kill`: a minimal Debian has no other. An error means that they were gone already.
            let _ = run("sh", &["-c", &format!("kill -9 {ids}")]);
            pause(Duration::from_millis(5));
        }
    }
}

fn hosts(other: &Side) -> String {
    let (v4, v6) = (other.v4, other.v6);
    format!(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n\
         {v4} both.test\n{v6} both.test\n{v4} v4.test\n{v6} v6.test\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_stands_for_both_addresses_of_the_other_side() {
        let text = hosts(&Side::new("x".into(), 2));
        assert!(text.contains("10.77.0.2 both.test\nfd00:77::2 both.test"), "{text}");
    }
}

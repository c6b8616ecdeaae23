//! One namespace with an interface, an address of each version, and what runs inside.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::bound::pause;
use crate::tool::run;
use crate::{IpVersion, NetnsError};

/// One namespace of a [`Pair`](crate::Pair) or a [`Star`](crate::Star).
#[derive(Debug)]
pub struct Side {
    namespace: String,
    device: &'static str,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Side {
    pub(crate) fn new(namespace: String, device: &'static str, v4: Ipv4Addr, v6: Ipv6Addr) -> Self {
        Self { namespace, device, v4, v6 }
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

    /// Name of the interface towards the others.
    pub fn device(&self) -> &'static str {
        self.device
    }

    /// Name of the namespace, as `ip netns` lists it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A command that will run inside. `ip netns exec` replaces itself by the program, so the
    /// child's process id is the program's own.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// Runs `ip` inside, for whatever this crate does not wrap: `side.ip(&["link", "set", "lan",
    /// "down"])`.
    pub fn ip(&self, arguments: &[&str]) -> Result<String, NetnsError> {
        run("ip", &[&["-netns", &*self.namespace], arguments].concat())
    }

    /// Does something in a thread of its own that is inside, as are the threads that it starts, and
    /// the sockets that it makes stay there.
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

    /// `ip netns exec` shows these files to the program in place of those in `/etc`.
    fn files(&self) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.namespace)
    }

    /// The namespace, with its loopback up.
    pub(crate) fn create(&self) -> Result<(), NetnsError> {
        run("ip", &["netns", "add", &self.namespace])?;
        self.ip(&["link", "set", "lo", "up"]).map(drop)
    }

    /// Host names known inside, as lines of `/etc/hosts`; none is asked for elsewhere.
    pub(crate) fn know_hosts(&self, lines: &str) -> Result<(), NetnsError> {
        self.write_file("hosts", &format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n{lines}"))?;
        // Without name servers, so that an unknown name fails at once instead of asking the real
        // network.
        self.write_file("resolv.conf", "options timeout:1 attempts:1\n")
    }

    fn write_file(&self, name: &str, content: &str) -> Result<(), NetnsError> {
        let path = self.files().join(name);
        let write = || fs::create_dir_all(self.files()).and_then(|()| fs::write(&path, content));
        write().map_err(|source| NetnsError::Write { path: path.clone(), source })
    }

    pub(crate) fn remove(&self) {
        self.kill_processes();
        // Deleting one end deletes both; without it the link would live until the kernel has reaped
        // the namespace. Errors are expected here after a half-finished set-up, and nobody could
        // act on others.
        let _ = self.ip(&["link", "delete", self.device]);
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
            // The shell's own `kill`: a minimal Debian has no other. An error means that they were
            // gone already.
            let _ = run("sh", &["-c", &format!("kill -9 {ids}")]);
            pause(Duration::from_millis(5));
        }
    }
}

//! One run of one contender: a fresh server, a client to its end, and the client's CPU time.
#![expect(unsafe_code, reason = "the CPU time of one child is only told by wait4")]

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};
use netaware_netns::{Running, Transport, wait_until_bound};

/// What to start.
pub(crate) struct Session {
    /// The server.
    pub(crate) server: Command,
    /// The port by which it shows that it is ready.
    pub(crate) ready: (Transport, u16),
    /// The client, which ends by itself.
    pub(crate) client: Command,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: String,
    /// User and system time of the client with all its threads and children, in seconds.
    pub(crate) cpu_seconds: f64,
}

impl Session {
    /// Runs the client against the server; the server is killed afterwards, on every path.
    pub(crate) fn run(mut self) -> Result<Finished> {
        let _server = start_server(&mut self.server, self.ready)?;
        finish(&mut self.client)
    }
}

/// Starts a server and waits until its port is open.
pub(crate) fn start_server(server: &mut Command, (transport, port): (Transport, u16)) -> Result<Running> {
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(server)?;
    wait_until_bound(running.id(), transport, port)?;
    Ok(running)
}

/// Runs a client to its end; an exit status other than 0 is an error with its last words.
pub(crate) fn finish(client: &mut Command) -> Result<Finished> {
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = client.spawn().with_context(|| format!("could not start {client:?}"))?;
    let errors = child.stderr.take().map(|pipe| thread::spawn(move || read_all(pipe)));
    let stdout = child.stdout.take().map(read_all).unwrap_or_default();
    let stderr = errors.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let (status, cpu_seconds) = reap(&child)?;
    if status != 0 {
        let words = if stderr.trim().is_empty() { last_lines(&stdout) } else { last_lines(&stderr) };
        bail!("{client:?} ended with wait status {status:#x}: {words}");
    }
    Ok(Finished { stdout, cpu_seconds })
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is all there is; the exit status decides about the rest.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// Waits like [`Child::wait`], and learns the CPU time of the child and of those it waited for
/// itself.
fn reap(child: &Child) -> Result<(i32, f64)> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of this plain C structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals of the right type. `pid` is our own child, which
        // nobody else has waited for, so the number cannot have been given to another process.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            return Ok((status, seconds(usage.ru_utime) + seconds(usage.ru_stime)));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("wait4");
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_child_is_charged_and_an_idle_one_is_not() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done";
        let busy = finish(Command::new("sh").args(["-c", busy])).unwrap();
        let idle = finish(Command::new("sleep").arg("0.1")).unwrap();
        assert_eq!(busy.stdout, "done\n");
        assert!(busy.cpu_seconds > 3.0 * idle.cpu_seconds, "{busy:?} {idle:?}");
    }

    #[test]
    fn child_behind_a_time_limit_is_charged_too() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let direct = finish(Command::new("sh").args(["-c", busy])).unwrap().cpu_seconds;
        let limited = finish(Command::new("timeout").args(["9", "sh", "-c", busy])).unwrap().cpu_seconds;
        assert!(limited > direct / 3.0, "{limited} {direct}");
    }

    #[test]
    fn failure_carries_the_last_words() {
        let error = finish(Command::new("sh").args(["-c", "echo no route >&2; exit 1"])).unwrap_err();
        assert!(error.to_string().contains("no route"), "{error}");
    }
}

//! A program that ends when its guard does.

use std::process::{Child, Command};

use crate::NetnsError;

/// A started program. Dropping it kills the program (SIGKILL) and reaps it, so a failing test
/// leaves no server behind.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Result<Self, NetnsError> {
        let spawned = command.spawn();
        spawned.map(Self).map_err(|source| NetnsError::Spawn { command: format!("{command:?}"), source })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// The child, to read its output, or to see it end.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a program that has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_ends_with_its_guard() {
        let running = Running::start(Command::new("sleep").arg("1000")).unwrap();
        let process = format!("/proc/{}", running.id());
        assert!(std::path::Path::new(&process).exists());
        drop(running);
        assert!(!std::path::Path::new(&process).exists());
    }
}

//! Secrets in the environment, which children do not inherit.

use std::process::Command;

/// The variables that hold a secret themselves: the shared key, and the password of ClickHouse.
pub const SECRET_VARIABLES: [&str; 2] = ["NETAWARE_KEY", "NETAWARE_CLICKHOUSE_PASSWORD"];

/// Takes the secrets out of what a child inherits. Every program that this one starts gets its
/// environment through here.
pub fn without_secrets(command: &mut Command) -> &mut Command {
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_we_start_does_not_find_the_key_in_its_environment() {
        let mut command = Command::new("program");
        command.env("NETAWARE_KEY", "sesame").env("NETAWARE_CLICKHOUSE_PASSWORD", "secret").env("PORT", "1");
        without_secrets(&mut command);
        for (name, value) in command.get_envs() {
            assert_eq!(value.is_some(), name == "PORT", "{}", name.display());
        }
        assert_eq!(command.get_envs().count(), 3, "a variable of our own environment is removed too");
    }
}

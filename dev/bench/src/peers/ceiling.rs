//! Our plain C program `udp_gso_ceiling`: nothing but the system calls.

use std::path::Path;

use anyhow::{Context as _, Result};
use netaware_netns::Transport;

use crate::contest::Reading;
use crate::place::Place;
use crate::session::Session;

const PORT: u16 = 7700;

pub(crate) fn udp(program: &Path, place: Place<'_>, payload: u32, seconds: u32) -> Result<Reading> {
    let (address, port) = (place.address().to_string(), PORT.to_string());
    let mut server = place.server(program);
    server.args(["receive", &address, &port]);
    let mut client = place.client(program, seconds);
    client.args(["send", &address, &port, &payload.to_string(), &seconds.to_string()]);
    let finished = Session { server, ready: (Transport::Udp, PORT), client }.run()?;
    parse(&finished.stdout)
}

fn parse(line: &str) -> Result<Reading> {
    let value = |name: &str| {
        let text = line.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        text.and_then(|text| text.parse::<f64>().ok()).with_context(|| format!("no {name} in: {line}"))
    };
    let (sent, received, seconds) = (value("sent")?, value("received")?, value("seconds")?);
    Ok(vec![("packets/s", received / seconds), ("loss %", 100.0 * (sent - received) / sent)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_what_arrived_and_the_rest_is_loss() {
        let reading = parse("sent=1000 received=900 seconds=2.0\n").unwrap();
        assert_eq!(reading, [("packets/s", 450.0), ("loss %", 10.0)]);
    }
}

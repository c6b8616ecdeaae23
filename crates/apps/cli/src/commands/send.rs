//! `netaware send`: files to a host on which `netaware receive` runs.

mod show;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::{ArgGroup, Args};
use netaware_io::stop::StopFlag;
use netaware_record::IpVersion;
use netaware_transfer::{Encryption, SendReport, SendRequest, SwitchPlan, Wanted, send};
use netaware_units::Span;
use netaware_wire::proof::Key;
use netaware_wire::transfer::{Digest, TRANSFER_PORT};

use crate::exit::Exit;
use crate::flags::host::Host;
use crate::flags::output::TextOrJson;
use crate::flags::{key, quantity};
use crate::signals;
use show::Show;

const LONG: &str = "\
Sends files and folders to a host on which 'netaware receive' runs, over IPv4 and IPv6 at once: the stream goes over one of \
them, goes over to the other one when that is wanted, faster or all that is left, and loses no byte. A transfer that broke \
off goes on where it was, whichever end was killed: start the same command again. Each file is compared by its BLAKE3 and \
appears under its name only when it is complete. Permissions and times are kept; symbolic links in folders are not sent.";

const AFTER: &str = "\
Examples:
  netaware send disk.img lab-b
  netaware send results/ notes.txt lab-b:5000
  netaware send disk.img 192.0.2.7,2001:db8::7   a host without a name
  netaware send disk.img lab-b --switch 4,at=50% begin with IPv4, change in the middle
  netaware send disk.img lab-b --fingerprint 3fa0…   encrypted, to the receiver that printed this

Exit codes:
  0  everything is there
  2  something is not, or the command line is wrong";

const PATH: &str = "Path";
const OUTPUT: &str = "Output";

/// Send files over both IP versions
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
#[command(group = ArgGroup::new("versions").args(["ipv4", "ipv6"]))]
pub(crate) struct Send {
    /// Files and folders
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Host on which `netaware receive` runs: a name, an address, HOST:PORT, [IPv6]:PORT, or
    /// several addresses of one host with commas between
    #[arg(value_name = "HOST", required = true, value_parser = destination)]
    host: Host,
    /// Port of the receiver [default: 14234]
    #[arg(short, long, value_name = "PORT", value_parser = quantity::whole::<u16>(1..=65_535), help_heading = PATH)]
    port: Option<u16>,
    /// Use IPv4 only
    #[arg(short = '4', long, help_heading = PATH)]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, help_heading = PATH)]
    ipv6: bool,
    /// When to change the IP version: auto (to the faster one), off (only away from one that died),
    /// 4 or 6 (begin there), at=50% (to the other one when half of the bytes are there), or
    /// several: 4,at=25%,at=75%
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = plan, help_heading = PATH)]
    switch: SwitchPlan,
    /// File with the shared key of the receiver; the variable NETAWARE_KEY can hold the key instead
    #[arg(long, value_name = "FILE", help_heading = PATH)]
    key_file: Option<PathBuf>,
    /// Encrypt, to the receiver that shows the certificate with this SHA-256; 'netaware receive
    /// --tls' prints it
    #[arg(long, value_name = "SHA256", help_heading = PATH)]
    fingerprint: Option<Digest>,
    /// Encrypt; without --fingerprint it is the shared key that tells the receiver from others
    #[arg(long, help_heading = PATH)]
    tls: bool,
    /// Give up on an IP version that does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time, help_heading = PATH)]
    connect_timeout: Span,
    /// When the connection breaks, try again until nothing has got on for this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::seconds, help_heading = PATH)]
    patience: Span,
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true, help_heading = OUTPUT)]
    format: TextOrJson,
    /// Nothing but the result: no progress, no notes
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

impl Send {
    /// Sends, and tells what came of it.
    ///
    /// # Errors
    /// Nothing could be sent at all.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let request = self.request()?;
        let stop = StopFlag::new();
        let mut show = Show::new(self.quiet);
        let status = show.status();
        signals::listen(&stop, move |event| status.tell(event))?;
        let sent = send(&request, &stop, &mut |progress| show.progress(progress));
        show.finish();
        let report = sent?;
        let printed = match self.format {
            // The error says it all.
            TextOrJson::Text if has_not_begun(&report) => Ok(()),
            TextOrJson::Text => show::text(&report, &request.host),
            TextOrJson::Json => show::json(&report, &request),
        };
        if let Some(why) = &report.ended {
            eprintln!(
                "error: {why}{}",
                if why.can_go_on() { "; the same command goes on where it was" } else { "" }
            );
        }
        let exit = if report.is_complete() { Exit::Done } else { Exit::NotMeasured };
        exit.once_printed(printed)
    }

    fn request(&self) -> anyhow::Result<SendRequest> {
        if let (Some(a), Some(b)) = (self.host.port, self.port) {
            ensure!(a == b, "HOST says port {a} and --port says {b}: give one of them");
        }
        let port = self.host.port.or(self.port).unwrap_or(TRANSFER_PORT);
        let key = key::read(self.key_file.as_deref())?.map(Key::new).transpose().context("--key-file")?;
        let encryption = match (self.fingerprint, self.tls, &key) {
            (Some(fingerprint), ..) => Encryption::Pinned(fingerprint),
            (None, true, Some(_)) => Encryption::ByKey,
            (None, true, None) => anyhow::bail!(
                "--tls needs --fingerprint (the receiver prints it) or a shared key: anybody could be the receiver"
            ),
            (None, false, _) => Encryption::Off,
        };
        Ok(SendRequest {
            wanted: match (self.ipv4, self.ipv6) {
                (true, _) => Wanted::Only(IpVersion::V4),
                (_, true) => Wanted::Only(IpVersion::V6),
                _ => Wanted::Each,
            },
            key,
            encryption,
            switch: self.switch.clone(),
            connect_patience: self.connect_timeout,
            patience: self.patience,
            ..SendRequest::new(self.files.clone(), self.host.name.clone(), port)
        })
    }
}

fn has_not_begun(report: &SendReport) -> bool {
    let nothing = report.sent == 0 && report.written + report.present == 0 && report.failures.is_empty();
    report.ended.is_some() && nothing
}

fn plan(text: &str) -> Result<SwitchPlan, String> {
    text.parse().map_err(|why: netaware_transfer::SwitchPlanError| why.to_string())
}

/// As [`Host`], or addresses of one host with commas between.
fn destination(text: &str) -> Result<Host, String> {
    if !text.contains(',') {
        return text.parse();
    }
    let names: Result<Vec<String>, String> = text
        .split(',')
        .map(|part| {
            let host: Host = part.trim().parse()?;
            if host.port.is_some() {
                Err(format!("'{part}': give the port with --port"))
            } else {
                Ok(host.name)
            }
        })
        .collect();
    Ok(Host { name: names?.join(","), port: None })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        send: Send,
    }

    fn request(words: &str) -> Result<SendRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map_err(|e| e.to_string())?.send.request().map_err(|e| e.to_string())
    }

    #[test]
    fn the_last_word_is_the_host() {
        let request = request("a b/ lab-b:99").unwrap();
        assert_eq!(request.files, [PathBuf::from("a"), "b/".into()]);
        assert_eq!((request.host.as_str(), request.port), ("lab-b", 99));
        assert!(request.switch.auto && request.encryption == Encryption::Off);
    }

    #[test]
    fn a_host_without_a_name_has_several_addresses() {
        let request = request("a 192.0.2.7,[2001:db8::7] -p 7").unwrap();
        assert_eq!((request.host.as_str(), request.port), ("192.0.2.7,2001:db8::7", 7));
    }

    #[test]
    fn encryption_needs_something_to_know_the_receiver_by() {
        assert!(request("a h --tls").unwrap_err().contains("--fingerprint"));
        let pinned = request(&format!("a h --fingerprint {}", "0a".repeat(32))).unwrap();
        assert_eq!(pinned.encryption, Encryption::Pinned(Digest([10; 32])));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            "a",
            "a h -4 -6",
            "a h --switch at=0%",
            "a h --switch 4,6",
            "a h --fingerprint 12",
            "a h -p 0",
            "a h:1 -p 2",
            "a 192.0.2.7:1,::1",
            "a h --connect-timeout 0s",
        ] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }
}

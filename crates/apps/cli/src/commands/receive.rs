//! `netaware receive`: takes files from `netaware send`.

mod show;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use netaware_confine::{Confinement, Report};
use netaware_io::stop::StopFlag;
use netaware_io::zone::{self, ZonedIp};
use netaware_transfer::{Existing, Identity, ReceiveConfig, Receiver, Until};
use netaware_wire::proof::Key;
use netaware_wire::transfer::TRANSFER_PORT;

use crate::exit::Exit;
use crate::flags::output::TextOrJson;
use crate::flags::{identity_file, key, quantity};
use crate::signals;
use crate::sink;
use show::Show;

const LONG: &str = "\
Takes files from 'netaware send' and puts them into a folder and nowhere else, over both IP versions. A file stands under a \
name that ends in '.netaware-part' until all of it is there and is what was sent; what broke off goes on from there. A file \
that is there already with other content is refused, unless --overwrite is given. Anybody who reaches the port can send, \
unless a key is set.";

const AFTER: &str = "\
Examples:
  netaware receive ~/incoming
  netaware receive . --once --key-file key       one transfer, from who has the key
  netaware receive . --tls                       encrypted; prints what the sender has to be given

Exit codes:
  0  ended by a signal; with --once: everything that was sent is there
  2  with --once: something is not; could not listen, or the command line is wrong";

const SECURITY: &str = "Security";
const OUTPUT: &str = "Output";

/// Take files that others send
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Receive {
    /// The folder for what comes
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// TCP port; 0 lets the system choose one
    #[arg(short, long, value_name = "PORT", default_value_t = TRANSFER_PORT, value_parser = quantity::whole::<u16>(0..=65_535))]
    port: u16,
    /// Listen on this address instead of all (may be given several times)
    #[arg(short = 'B', long, value_name = "ADDR", value_parser = zone::parse_ip)]
    bind: Vec<ZonedIp>,
    /// Let what comes replace files of the same name
    #[arg(long)]
    overwrite: bool,
    /// End after one transfer; one that broke off is waited for
    #[arg(long)]
    once: bool,
    /// Transfers at the same time
    #[arg(long, value_name = "N", default_value = "16", value_parser = quantity::whole::<u16>(1..=1000))]
    max_transfers: u16,
    /// File with a shared key that senders must have; the variable NETAWARE_KEY can hold the key
    /// instead
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    key_file: Option<PathBuf>,
    /// Encrypt, with a certificate made here at the first time and kept in netaware/receive.pem in
    /// the user's data folder
    #[arg(long, help_heading = SECURITY)]
    tls: bool,
    /// Encrypt with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert_key", help_heading = SECURITY)]
    cert: Option<PathBuf>,
    /// The key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = SECURITY)]
    cert_key: Option<PathBuf>,
    /// text, or json: one object per line, first where it listens, then one for each transfer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true, help_heading = OUTPUT)]
    format: TextOrJson,
    /// Say on stderr what this program takes from itself before it listens
    #[arg(short, long, help_heading = OUTPUT)]
    verbose: bool,
    /// No progress
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

impl Receive {
    /// Receives until it is told to stop.
    ///
    /// # Errors
    /// The folder, the key, the certificate or the port cannot be had.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let config = self.config()?;
        let fingerprint = config.identity.as_ref().map(Identity::fingerprint);
        // Keys and certificates are read, and the listener's threads come next.
        self.say(&self.confinement().enter());
        let receiver = Receiver::bind(config)?;
        let stop = StopFlag::new();
        let show = Arc::new(Show::new(self.format, self.quiet));
        let status = show.clone();
        signals::listen(&stop, move |event| status.asked(event))?;
        sink::announce(&show.listening(receiver.addresses(), fingerprint))?;
        let until = if self.once { Until::OneTransfer } else { Until::Stopped };
        let shown = show.clone();
        receiver.run(until, &stop, move |event| shown.show(event))?;
        let is_short = self.once && !show.has_completed();
        Ok(if is_short { Exit::NotMeasured } else { Exit::Done })
    }

    fn confinement(&self) -> Confinement {
        Confinement { writes: vec![self.folder.clone()], ..Confinement::default() }
    }

    fn say(&self, report: &Report) {
        if self.verbose {
            for line in report.lines() {
                eprintln!("{line}");
            }
        }
    }

    fn config(&self) -> anyhow::Result<ReceiveConfig> {
        Ok(ReceiveConfig {
            folder: self.folder.clone(),
            existing: if self.overwrite { Existing::Overwrite } else { Existing::Keep },
            port: self.port,
            bind: self.bind.clone(),
            key: key::read(self.key_file.as_deref())?.map(Key::new).transpose()?,
            identity: self.identity()?,
            max_transfers: self.max_transfers.into(),
        })
    }

    fn identity(&self) -> anyhow::Result<Option<Identity>> {
        match (&self.cert, &self.cert_key) {
            (Some(certificate), Some(secret)) => {
                key::warn_if_exposed(secret);
                Ok(Some(Identity::read(certificate, secret)?))
            }
            _ if self.tls => {
                let file = identity_file("receive.pem")
                    .context("--tls: neither XDG_DATA_HOME nor HOME is set; give --cert")?;
                Ok(Some(Identity::kept(&file)?))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        receive: Receive,
    }

    fn config(words: &str) -> Result<ReceiveConfig, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map_err(|e| e.to_string())?.receive.config().map_err(|e| format!("{e:#}"))
    }

    #[test]
    fn flags_reach_the_receiver() {
        let config = config("in -p 0 -B ::1 -B 127.0.0.1 --overwrite --max-transfers 3").unwrap();
        assert_eq!((config.port, config.bind.len(), config.max_transfers), (0, 2, 3));
        assert_eq!((config.existing, config.identity.is_none()), (Existing::Overwrite, true));
    }

    /// A receiver that is taken over has no file of its user's beside what comes.
    #[test]
    fn a_receiver_keeps_its_folder_and_no_other_file() {
        let line = Line::try_parse_from(["x", "in", "--key-file", "key", "-v"]).unwrap().receive;
        let confinement = line.confinement();
        assert_eq!(confinement.writes, [PathBuf::from("in")]);
        assert!(confinement.reads.is_empty() && confinement.scratch.is_empty());
        assert!(confinement.programs.is_none() && line.verbose);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in ["", "in --cert a", "in --cert-key a", "in --max-transfers 0", "in --key-file none"] {
            assert!(config(bad).is_err(), "{bad}");
        }
        assert!(config("in --cert none --cert-key none").unwrap_err().contains("cannot read none"));
    }
}

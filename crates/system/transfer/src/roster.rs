//! Which transfer brings which file just now.
//!
//! A sender that died without a word leaves a transfer behind that holds its files. It is told from
//! one that is alone slow by its stream: nothing came for [`SILENT`] while somebody else waited for
//! the file.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netaware_stream::DualStream;
use netaware_units::{Mono, Span};
use netaware_wire::transfer::EntryPath;

#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Vec<Holder>>);

#[derive(Debug)]
struct Holder {
    transfer: u64,
    stream: DualStream,
    files: BTreeSet<EntryPath>,
    /// Bytes received when somebody first waited, or the last time that there were more, and when.
    seen: Option<(u64, Mono)>,
}

impl Roster {
    pub(crate) fn enter(&self, transfer: u64, stream: DualStream) {
        self.lock().push(Holder { transfer, stream, files: BTreeSet::new(), seen: None });
    }

    pub(crate) fn leave(&self, transfer: u64) {
        self.lock().retain(|holder| holder.transfer != transfer);
    }

    pub(crate) fn holds(&self, transfer: u64, file: &EntryPath) {
        self.change(transfer, |holder| {
            holder.files.insert(file.clone());
        });
    }

    pub(crate) fn lets_go(&self, transfer: u64, file: &EntryPath) {
        self.change(transfer, |holder| {
            holder.files.remove(file);
        });
    }

    /// Somebody waits for a file: whoever holds it and has gone silent is ended. Called again and
    /// again.
    pub(crate) fn press(&self, file: &EntryPath, now: Mono) {
        for holder in self.lock().iter_mut().filter(|holder| holder.files.contains(file)) {
            let received = holder.stream.status().received;
            match holder.seen {
                Some((seen, since)) if seen == received => {
                    if now - since > SILENT {
                        holder.stream.shutdown(Shutdown::Both);
                    }
                }
                _ => holder.seen = Some((received, now)),
            }
        }
    }

    fn change(&self, transfer: u64, change: impl Fn(&mut Holder)) {
        self.lock().iter_mut().filter(|holder| holder.transfer == transfer).for_each(change);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sender says something every two seconds.
const SILENT: Span = Span::from_secs(5);

//! Numbers to streams.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use netaware_stream::{DualListener, DualStream, Options};
use netaware_units::Span;

use crate::error::Failure;

/// What a number stands for.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) options: Options,
    pub(crate) nonblocking: bool,
    pub(crate) send_patience: Option<Span>,
    pub(crate) receive_patience: Option<Span>,
    pub(crate) what: What,
    /// Lent by `na_poll_fd`.
    pub(crate) descriptor: Option<Arc<std::os::fd::OwnedFd>>,
}

/// As far as it has come.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Fresh,
    Bound(Vec<SocketAddr>),
    Listener(Arc<DualListener>),
    Stream(DualStream),
}

#[derive(Debug, Default)]
struct Table {
    last: c_int,
    entries: BTreeMap<c_int, Arc<Mutex<Entry>>>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives it a number that no other has had lately.
pub(crate) fn insert(entry: Entry) -> Result<c_int, Failure> {
    let mut table = table();
    if table.entries.len() >= MOST {
        return Err(Failure::new(libc::EMFILE, "too many streams"));
    }
    loop {
        table.last = table.last.checked_add(1).unwrap_or(1);
        let number = table.last;
        if let Place::Vacant(free) = table.entries.entry(number) {
            free.insert(Arc::new(Mutex::new(entry)));
            return Ok(number);
        }
    }
}

/// What a number stands for.
pub(crate) fn entry(number: c_int) -> Result<Arc<Mutex<Entry>>, Failure> {
    table().entries.get(&number).cloned().ok_or_else(|| none(number))
}

pub(crate) fn remove(number: c_int) -> Result<(), Failure> {
    table().entries.remove(&number).map(drop).ok_or_else(|| none(number))
}

/// Lets go of everything.
pub(crate) fn clear() {
    // What goes with an entry takes its time; others need the table meanwhile.
    let entries = std::mem::take(&mut table().entries);
    drop(entries);
}

/// All streams there are.
pub(crate) fn streams() -> Vec<DualStream> {
    let entries: Vec<_> = table().entries.values().cloned().collect();
    entries.iter().filter_map(|entry| stream_of(entry).ok()).collect()
}

pub(crate) fn lock(entry: &Mutex<Entry>) -> MutexGuard<'_, Entry> {
    entry.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn stream_of(entry: &Mutex<Entry>) -> Result<DualStream, Failure> {
    match &lock(entry).what {
        What::Stream(stream) => Ok(stream.clone()),
        _ => Err(Failure::new(libc::ENOTCONN, "not connected")),
    }
}

fn none(number: c_int) -> Failure {
    Failure::new(libc::EBADF, format!("{number} is no stream"))
}

const MOST: usize = 65_536;

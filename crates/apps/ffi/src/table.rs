//! Numbers to streams and sockets of datagrams.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use netaware_record::IpVersion;
use netaware_stream::datagram::UnfitRules;
use netaware_stream::{
    Callback, CannotSwitch, DatagramOptions, DualDatagram, DualListener, DualStream, Options,
};
use netaware_units::Span;

use crate::error::Failure;

/// What a number stands for.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Those of datagrams are made from these.
    pub(crate) options: Options,
    pub(crate) carries: Carries,
    /// What `na_policy_callback` was given before there was something to steer.
    pub(crate) callback: Option<Callback>,
    /// Of `na_hold`, that have not been taken back.
    pub(crate) holds: u32,
    pub(crate) nonblocking: bool,
    pub(crate) send_patience: Option<Span>,
    pub(crate) receive_patience: Option<Span>,
    pub(crate) what: What,
    /// Lent by `na_poll_fd`.
    pub(crate) descriptor: Option<Arc<std::os::fd::OwnedFd>>,
}

/// What `na_socket` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    Bytes,
    Datagrams,
}

/// As far as it has come.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Fresh,
    Bound(Vec<SocketAddr>),
    Listener(Arc<DualListener>),
    Stream(DualStream),
    Datagrams(DualDatagram),
}

impl What {
    /// When this returns the callback before is not called any more for it, unless it is the
    /// caller.
    pub(crate) fn set_callback(&self, callback: Option<Callback>) {
        match self {
            Self::Stream(stream) => stream.set_policy_callback(callback),
            Self::Datagrams(socket) => socket.set_policy_callback(callback),
            Self::Listener(listener) => listener.set_policy_callback(callback),
            Self::Fresh | Self::Bound(_) => {}
        }
    }
}

impl Entry {
    pub(crate) fn datagram_options(&self) -> DatagramOptions {
        let Options { window, wanted, preferred, policy, .. } = self.options;
        DatagramOptions { inbox: window, wanted, preferred, policy, ..DatagramOptions::default() }
    }

    pub(crate) fn apply_rules(&self) -> Result<(), Failure> {
        match &self.what {
            What::Stream(stream) => stream.set_policy(self.options.policy),
            What::Datagrams(socket) => socket.set_policy(self.options.policy).map_err(unfit)?,
            What::Listener(listener) => listener.set_policy(self.options.policy),
            What::Fresh | What::Bound(_) => {}
        }
        Ok(())
    }

    /// What was said of policies while it connected counts as well.
    pub(crate) fn apply_policy(&self) -> Result<(), Failure> {
        self.apply_rules()?;
        if self.callback.is_some() {
            self.what.set_callback(self.callback.clone());
        }
        Ok(())
    }
}

pub(crate) fn unfit(why: UnfitRules) -> Failure {
    Failure::new(libc::EINVAL, why.to_string())
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

pub(crate) fn remove(number: c_int) -> Result<Arc<Mutex<Entry>>, Failure> {
    table().entries.remove(&number).ok_or_else(|| none(number))
}

/// Lets go of everything.
pub(crate) fn clear() {
    // What goes with an entry takes its time; others need the table meanwhile.
    let entries = std::mem::take(&mut table().entries);
    drop(entries);
}

/// Everything there is.
pub(crate) fn all() -> Vec<Arc<Mutex<Entry>>> {
    table().entries.values().cloned().collect()
}

/// Moves a stream, or all sessions of a socket of datagrams as far as they can.
pub(crate) fn switch(entry: &Mutex<Entry>, to: IpVersion) -> Result<(), CannotSwitch> {
    let what = lock(entry).what.clone();
    match what {
        What::Stream(stream) => stream.switch(to).map(drop),
        What::Datagrams(socket) => {
            let done = socket.peers().into_iter().map(|peer| socket.switch(peer, to).map(drop));
            done.reduce(Result::or).unwrap_or(Err(CannotSwitch::Over))
        }
        What::Fresh | What::Bound(_) | What::Listener(_) => Err(CannotSwitch::Over),
    }
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

pub(crate) fn datagrams_of(entry: &Mutex<Entry>) -> Result<DualDatagram, Failure> {
    let entry = lock(entry);
    match (&entry.what, entry.carries) {
        (What::Datagrams(socket), _) => Ok(socket.clone()),
        (_, Carries::Datagrams) => Err(Failure::new(libc::ENOTCONN, "neither connected nor listening")),
        (_, Carries::Bytes) => Err(Failure::new(libc::EINVAL, "a stream, without NA_DGRAM")),
    }
}

fn none(number: c_int) -> Failure {
    Failure::new(libc::EBADF, format!("{number} is no stream"))
}

const MOST: usize = 65_536;

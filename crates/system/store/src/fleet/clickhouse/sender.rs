//! The thread that sends what waits: oldest first, one insert after the other, and again until
//! ClickHouse says yes.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_units::Span;

use super::http::Http;
use super::schema;
use super::spool::{Outlet, Shared, State};
use crate::fleet::{Ages, FleetError};

/// Rows are collected for so long before they are sent: ClickHouse likes few large inserts.
const COLLECT: Duration = Duration::from_millis(200);

/// After a first failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Between attempts at most: a ClickHouse that is back is noticed so soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Owns the thread; it ends with this, and what has not been sent waits in the buffer.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    pub(super) fn start(
        http: Http,
        buffer: &Path,
        ages: Ages,
        shared: Arc<Shared>,
    ) -> Result<Self, FleetError> {
        let mut outlet = Outlet::open(buffer)?;
        let theirs = Arc::clone(&shared);
        let work = move || run(&http, &mut outlet, ages, &theirs);
        let thread = std::thread::Builder::new().name("fleet-sender".into()).spawn(work);
        let thread = thread.map_err(|source| FleetError::Folder { path: buffer.to_path_buf(), source })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits until nothing waits; whether that came about in time.
    pub(super) fn flush(&self, patience: Span) -> bool {
        let waiting = |state: &mut State| state.backlog.rows > 0;
        let (state, _) = self
            .shared
            .bell
            .wait_timeout_while(self.shared.lock(), patience.to_std(), waiting)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        state.backlog.rows == 0
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(http: &Http, outlet: &mut Outlet, ages: Ages, shared: &Shared) {
    let mut is_laid_out = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let sent = if is_laid_out { Ok(()) } else { schema::lay_out(http, ages) };
        let sent = sent.and_then(|()| {
            is_laid_out = true;
            send_one(http, outlet, shared)
        });
        let (wait, until_new) = match sent {
            Ok(true) => {
                pause = FIRST_PAUSE;
                shared.lock().backlog.trouble = None;
                (Duration::ZERO, false)
            }
            Ok(false) => {
                shared.lock().backlog.trouble = None;
                (COLLECT, true)
            }
            Err(error) => {
                shared.lock().backlog.trouble = Some(error.to_string());
                // Somebody may have dropped the tables.
                is_laid_out = is_laid_out && !matches!(error, FleetError::Refused { .. });
                let now = pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
                (now, false)
            }
        };
        if is_told_to_stop(shared, wait, until_new) {
            return;
        }
    }
}

/// Whether there was something to send.
fn send_one(http: &Http, outlet: &mut Outlet, shared: &Shared) -> Result<bool, FleetError> {
    let Some(insert) = outlet.next()? else { return Ok(false) };
    http.insert(insert.table.name(), &insert.table.columns(), &insert.token, &insert.rows.bytes)?;
    outlet.done(insert.batch, shared)?;
    Ok(true)
}

/// Waits: so long, or with nothing to do until there is something and then so long.
fn is_told_to_stop(shared: &Shared, wait: Duration, until_new: bool) -> bool {
    let mut state = shared.lock();
    while until_new && !state.stop && state.backlog.rows == 0 {
        state = shared.bell.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    let stopped = |state: &mut State| !state.stop;
    let (state, _) = shared
        .bell
        .wait_timeout_while(state, wait, stopped)
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    state.stop
}

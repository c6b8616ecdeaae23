//! SIGUSR1 and SIGUSR2, for programs that want to be told from outside where to go.

use std::ffi::c_int;
use std::sync::Mutex;
use std::thread::JoinHandle;

use netaware_io::signals::quiet_thread;
use netaware_record::IpVersion;
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};

use crate::calls::guarded;
use crate::error::Failure;
use crate::table;

static LISTENING: Mutex<Option<Listening>> = Mutex::new(None);

struct Listening {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Listening {
    fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}

/// With `on` other than 0: from now on SIGUSR1 moves all streams and datagrams to IPv4 and SIGUSR2 to IPv6. With 0 they do nothing any
/// more. A stream without a connection of that version stays. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn na_signals(on: c_int) -> c_int {
    guarded(|| {
        let Ok(mut listening) = LISTENING.lock() else { return Err(Failure::new(libc::EAGAIN, "busy")) };
        match (on != 0, listening.take()) {
            (true, Some(already)) => *listening = Some(already),
            (true, None) => *listening = Some(listen()?),
            (false, Some(already)) => already.end(),
            (false, None) => {}
        }
        Ok(0)
    })
}

/// At the program's end.
pub(crate) fn stop() {
    if let Some(listening) = LISTENING.lock().ok().and_then(|mut listening| listening.take()) {
        listening.end();
    }
}

fn listen() -> Result<Listening, Failure> {
    let mut signals = Signals::new([SIGUSR1, SIGUSR2])?;
    let handle = signals.handle();
    let thread = quiet_thread("dual-signals", move || {
        for signal in signals.forever() {
            let to = if signal == SIGUSR1 { IpVersion::V4 } else { IpVersion::V6 };
            for entry in table::all() {
                let _ = table::switch(&entry, to);
            }
        }
    })?;
    Ok(Listening { handle, thread })
}

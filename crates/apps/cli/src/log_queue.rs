//! Log lines on their way to standard error, for which nobody who has one to write ever waits.
//!
//! Whoever reads standard error may have gone, or may read no longer while the pipe between is
//! full. Then a line that is written directly fails or blocks for as long as the reader likes, and
//! with it the thread that wrote it: the one that accepts connections, or the one that a signal has
//! told to end the program. So a thread of its own writes, the others leave their lines in a queue
//! that is bounded, and what does not fit is counted and said as soon as there is room again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::terminal;

/// Where log lines are left. Cloned freely.
#[derive(Debug, Clone)]
pub(crate) struct LogQueue {
    queue: SyncSender<Message>,
    /// Lines that did not fit since it was said last.
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// All lines before it have been written.
    Written(SyncSender<()>),
}

impl LogQueue {
    /// A queue to `out`, with a thread that writes.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(crate) fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, lines) = sync_channel(MAX_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let (ready, is_ready) = sync_channel(1);
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            // It starts before a program is confined, and opens no file.
            netaware_confine::forbid_files();
            let _ = ready.send(());
            write_all(&lines, &counted, out);
        })?;
        // A confinement that is entered now knows of it.
        let _ = is_ready.recv();
        Ok(Self { queue, lost })
    }

    /// Waits until what was left so far is written, or until it is clear that nobody reads.
    fn finish(&self) {
        let (written, all_written) = sync_channel(1);
        if self.queue.try_send(Message::Written(written)).is_ok() {
            // A reader that has stopped reading gets no more time than this.
            let _ = all_written.recv_timeout(PATIENCE);
        }
    }
}

/// The queue of this process, if it writes a log.
static OF_THIS_PROCESS: OnceLock<LogQueue> = OnceLock::new();

/// A queue to standard error, which [`finish`] empties.
///
/// # Errors
/// The system starts no thread.
pub(crate) fn start() -> io::Result<LogQueue> {
    let queue = LogQueue::to(io::stderr())?;
    Ok(OF_THIS_PROCESS.get_or_init(|| queue).clone())
}

/// Before the program ends: gives the last lines the time to be written.
pub(crate) fn finish() {
    if let Some(queue) = OF_THIS_PROCESS.get() {
        queue.finish();
    }
}

fn write_all(lines: &Receiver<Message>, lost: &AtomicU64, mut out: impl Write) {
    for message in lines {
        match message {
            Message::Line(line) => {
                let missing = lost.swap(0, Ordering::AcqRel);
                // A reader who has gone needs no line, and the next may be read by somebody else.
                if missing > 0 {
                    let _ = writeln!(out, "netaware: {missing} log lines are missing here: nobody read them");
                }
                let _ = out.write_all(&line);
            }
            Message::Written(told) => {
                let _ = out.flush();
                let _ = told.send(());
            }
        }
    }
}

/// One line, in as many pieces as its writer likes.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    queue: &'a LogQueue,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let line = Message::Line(terminal::log_line(&self.bytes).into_bytes());
        if self.queue.queue.try_send(line).is_err() {
            self.queue.lost.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { queue: self, bytes: Vec::new() }
    }
}

/// Lines of some 150 bytes: what a busy responder says in minutes.
const MAX_WAITING: usize = 1024;
/// For the last lines; whoever reads at all has read them in a fraction of it.
const PATIENCE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// A reader who takes nothing until he is allowed to.
    struct Blocked {
        begun: SyncSender<()>,
        allowed: Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Nobody needs to hear it but once; and once allowed, always allowed.
            let _ = self.begun.try_send(());
            let _ = self.allowed.recv();
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A reader who has gone.
    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn nobody_who_writes_a_log_line_waits_for_its_reader_and_what_is_missing_is_counted() {
        let ((begun, begins), (allow, allowed)) = (sync_channel(1), channel());
        let taken = Arc::new(Mutex::new(Vec::new()));
        let queue = LogQueue::to(Blocked { begun, allowed, taken: Arc::clone(&taken) }).unwrap();
        writeln!(queue.make_writer(), "the line that is stuck").unwrap();
        begins.recv().unwrap();
        for n in 1..=MAX_WAITING + 100 {
            writeln!(queue.make_writer(), "line {n}").unwrap();
        }
        assert_eq!(queue.lost.load(Ordering::Acquire), 100);
        // It is full, so nobody waits for the end either.
        queue.finish();
        drop(allow);
        let due = netaware_io::clock::now() + netaware_units::Span::from_secs(10);
        while !String::from_utf8_lossy(&taken.lock().unwrap()).contains("line 1024\n") {
            assert!(netaware_io::clock::now() < due, "the lines that did fit are written");
            thread::yield_now();
        }
        let text = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
        assert!(text.contains("netaware: 100 log lines are missing here"), "{text}");
    }

    #[test]
    fn a_reader_who_has_gone_is_no_panic() {
        let queue = LogQueue::to(Gone).unwrap();
        for _ in 0..10 {
            writeln!(queue.make_writer(), "who hears this?").unwrap();
        }
        let (written, all_written) = sync_channel(1);
        queue.queue.try_send(Message::Written(written)).unwrap();
        all_written.recv().expect("the thread that writes is still there");
    }
}

//! A receiver in a thread, and what is sent to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_transfer::{
    Event, Existing, Progress, ReceiveConfig, ReceiveReport, Receiver, SendError, SendReport, SendRequest,
    SwitchPlan, Until, send,
};
use netaware_units::Span;
use netaware_wire::transfer::EntryPath;
use tempfile::TempDir;

/// Both loopback addresses.
pub(crate) const HERE: &str = "::1,127.0.0.1";

pub(crate) struct Ends {
    pub(crate) source: TempDir,
    pub(crate) target: TempDir,
    pub(crate) port: u16,
    reports: Arc<Mutex<Vec<ReceiveReport>>>,
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn config(folder: &Path) -> ReceiveConfig {
    ReceiveConfig {
        folder: folder.to_owned(),
        existing: Existing::Keep,
        port: 0,
        bind: Vec::new(),
        key: None,
        identity: None,
        max_transfers: 4,
    }
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl Fn(&mut ReceiveConfig)) -> Self {
        let [source, target] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut config = config(target.path());
        change(&mut config);
        let receiver = Receiver::bind(config).unwrap();
        let port = receiver.addresses()[0].port();
        let (stop, reports) = (StopFlag::new(), Arc::new(Mutex::new(Vec::new())));
        let (stopped, told) = (stop.clone(), reports.clone());
        let thread = std::thread::spawn(move || {
            let tell = move |event| {
                if let Event::Ended { report, .. } = event {
                    told.lock().unwrap().push(report);
                }
            };
            receiver.run(Until::Stopped, &stopped, tell).unwrap();
        });
        Self { source, target, port, reports, stop, thread: Some(thread) }
    }

    pub(crate) fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.source.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn got(&self, name: &str) -> Vec<u8> {
        fs::read(self.target.path().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// Returns once so many bytes of an unfinished file are at the receiver.
    pub(crate) fn until_it_holds(&self, name: &str, bytes: u64) {
        let partial = self.target.path().join(EntryPath::new(name).unwrap().partial_name());
        let deadline = clock::now() + Span::from_secs(20);
        while fs::metadata(&partial).map_or(0, |about| about.len()) < bytes {
            assert!(clock::now() < deadline, "{bytes} bytes of {name}");
            clock::sleep(Span::from_millis(5));
        }
    }

    pub(crate) fn request(&self, files: &[&Path]) -> SendRequest {
        SendRequest {
            switch: SwitchPlan::default(),
            ..SendRequest::new(files.iter().map(|file| (*file).to_owned()).collect(), HERE, self.port)
        }
    }

    pub(crate) fn send(&self, files: &[&Path]) -> SendReport {
        sent(&self.request(files)).unwrap()
    }

    /// The receiver's word of the transfers that are over, once there are so many.
    pub(crate) fn reports(&self, count: usize) -> Vec<ReceiveReport> {
        let deadline = clock::now() + Span::from_secs(20);
        loop {
            let mut reports = self.reports.lock().unwrap();
            if reports.len() >= count {
                return reports.drain(..).collect();
            }
            assert!(clock::now() < deadline, "{count} transfers end: {reports:?}");
            drop(reports);
            clock::sleep(Span::from_millis(5));
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking());
        }
    }
}

pub(crate) fn sent(request: &SendRequest) -> Result<SendReport, SendError> {
    send(request, &StopFlag::new(), &mut |_| {})
}

/// Sends with a look at each step.
pub(crate) fn sent_with(
    request: &SendRequest,
    stop: &StopFlag,
    mut progress: impl FnMut(Progress),
) -> SendReport {
    send(request, stop, &mut progress).unwrap()
}

/// Bytes that do not repeat.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

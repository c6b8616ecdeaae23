//! Path rates while other programs keep every core of both hosts busy. Loopback has no truth of its
//! own, so nothing may be told without saying so. An executable of its own: the programs would be
//! in the way of every other test.

use std::process::{Child, Command, Stdio};
use std::thread;

use netaware_io::stop::StopFlag;
use netaware_prober::{
    AvailableMethod, CapacityMethod, Directions, Estimation, EstimationRequest, Target, estimate,
};
use netaware_record::{PathRate, RateBound};
use netaware_server::{Config, Server};
use netaware_units::Span;

/// Programs that compute until dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    /// Two for each core.
    fn start() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let hog = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..cores * 2).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

fn estimated(target: &Target, estimation: Estimation, time: Span) -> Vec<PathRate> {
    let request = EstimationRequest {
        directions: Directions::Both,
        time,
        ..EstimationRequest::new(target.clone(), estimation)
    };
    let record = estimate(&request, &StopFlag::new(), &mut |_| {});
    record.versions.into_iter().flat_map(|version| version.path_rates).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn whatever_hosts_say_while_others_have_their_cores_is_flagged() {
    let bind = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
    let server = Server::bind(Config { port: 0, bind, ..Config::default() }).unwrap();
    let target =
        Target { port: server.addresses()[0].port(), own_responder: true, ..Target::new("localhost") };
    let stopper = server.stopper();
    let running = thread::spawn(move || server.run().unwrap());
    let hogs = Hogs::start();
    let estimations = [
        (Estimation::Capacity(CapacityMethod::Automatic), Span::from_secs(4)),
        (Estimation::Available(AvailableMethod::Automatic), Span::from_secs(6)),
    ];
    let mut figures = 0;
    for (estimation, time) in estimations {
        let rates = estimated(&target, estimation, time);
        assert_eq!(rates.len(), 4, "two versions, two directions: {rates:#?}");
        for rate in rates {
            let health = &rate.health;
            let told = [health.prober_process, health.responder_process, health.prober_busiest_core];
            assert!(told.iter().all(Option::is_some), "both ends tell: {rate:#?}");
            let Some(interval) = &rate.rate else { continue };
            figures += 1;
            let is_flagged = |word: &str| rate.flags.iter().any(|flag| flag == word);
            assert!(is_flagged("host_busy"), "{rate:#?}");
            assert!(rate.remarks.iter().any(|remark| remark.starts_with("busy host: ")), "{rate:#?}");
            let is_widened = match rate.bound {
                RateBound::None => interval.lo <= interval.estimate * 0.951,
                // The figure is the lower end, which holds what the other programs may have done.
                RateBound::AtLeast => {
                    rate.remarks.iter().any(|remark| remark.ends_with("holds what that may have done"))
                }
                RateBound::AtMost => true,
            };
            assert!(is_widened, "{rate:#?}");
        }
    }
    if figures == 0 {
        netaware_testkit::inconclusive("the host was too busy for any figure");
    }
    drop(hogs);
    stopper.stop();
    running.join().unwrap();
}

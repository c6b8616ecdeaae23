//! How close delays of a fleet are to those of the path. That depends on the machine, so nightly
//! runs each of these ten times.

use netaware_netns::permitted;

/// How far mean, minimum and maximum may be from the lab's own, ns.
const CLOSE_NS: [f64; 3] = [20e3, 20e3, 100e3];

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn delays_of_real_traffic_are_the_paths_own_to_20_us() {
    if permitted() {
        super::real_traffic_is_joined_as_the_path_treated_it(CLOSE_NS);
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn a_stamp_task_and_the_digests_of_its_packets_agree_to_20_us() {
    if permitted() {
        super::stamped::stamps_and_digests_agree(CLOSE_NS[0]);
    }
}

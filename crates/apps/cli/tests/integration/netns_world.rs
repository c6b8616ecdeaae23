//! What every measuring command does on the paths of the world (docs/world.md): nine of them here,
//! all of them in nightly ([`world_table`]). Needs root.

mod world_table;

use netaware_netns::permitted;
use netaware_testkit::world::Ask;
use netaware_testkit::world::cell::holds;

#[test]
fn a_geostationary_satellite_is_measured_by_its_own_round_trips() {
    if permitted() {
        holds("geostationary", Ask::Latency);
    }
}

#[test]
fn another_continent_at_100_mbit_is_filled_and_not_exceeded() {
    if permitted() {
        holds("continent-100m", Ask::TcpReverse);
    }
}

#[test]
fn a_modem_is_filled_and_not_flooded() {
    if permitted() {
        holds("modem-64k", Ask::TcpReverse);
    }
}

#[test]
fn three_in_a_hundred_lost_on_a_long_way_are_read_as_such() {
    if permitted() {
        holds("loss-3-120ms", Ask::Udp);
    }
}

#[test]
fn a_policer_is_not_read_as_more_than_it_lets_pass() {
    if permitted() {
        holds("policer-small-credit", Ask::Tcp);
    }
}

#[test]
fn udp_that_is_blocked_is_said_to_be_and_the_rest_is_measured() {
    if permitted() {
        holds("udp-blocked", Ask::Udp);
    }
}

#[test]
fn a_black_hole_of_ipv6_is_named_and_ends_nothing() {
    if permitted() {
        holds("black-hole-ipv6", Ask::Latency);
    }
}

#[test]
fn two_seconds_without_a_link_are_loss_and_no_end() {
    if permitted() {
        holds("blip-2s", Ask::Udp);
    }
}

#[test]
fn udp_of_which_nobody_typed_the_rate_does_not_flood_a_modem() {
    if permitted() {
        holds("modem-64k", Ask::Udp);
    }
}

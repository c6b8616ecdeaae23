//! What somebody who forges, floods or records packets can make a reflector do to others.

use netaware_wire::stamp::Timestamp;

use super::tests::{incoming, request};
use super::*;

fn keyed() -> Option<Key> {
    Key::new(*b"sesame").ok()
}

fn reflector(key: Option<Key>) -> Reflector {
    Reflector::new(ReflectorSettings { key, ..Default::default() })
}

/// Where somebody's packets seem to come from.
fn from(now: i64, address: &str) -> Incoming {
    Incoming { from: address.parse().unwrap(), ..incoming(now, 1) }
}

fn proven(seq: u32, ssid: u16) -> [u8; 112] {
    let mut packet = [0; 112];
    let sent_at = Timestamp(u64::from(seq) << 32);
    Request { seq, sent_at, error: ErrorEstimate::UNKNOWN, ssid }.emit(&mut packet, keyed().as_ref());
    packet
}

fn asked(seq: u32, key: Option<&Key>) -> Vec<u8> {
    if key.is_some() { proven(seq, 1).to_vec() } else { request(seq, 1).to_vec() }
}

#[test]
fn a_forged_packet_between_two_reflectors_does_not_go_round() {
    for key in [None, keyed()] {
        let (mut one, mut other) = (reflector(key.clone()), reflector(key.clone()));
        for seq in 0..20 {
            let mut packet = asked(seq, key.as_ref());
            let to_one = Incoming { port: 8620, ..from(0, "192.0.2.2:8621") };
            let ready = one.take(&to_one, &mut packet).unwrap();
            ready.seal(&mut packet, to_one.received_at, key.as_ref());
            let to_other = Incoming { port: 8621, ..from(0, "192.0.2.1:8620") };
            assert_eq!(other.take(&to_other, &mut packet).unwrap_err(), Refused::Answer);
        }
        assert_eq!((one.counts().answered, other.counts().answered, other.sessions()), (20, 0, 0));
    }
}

#[test]
fn an_echo_service_gets_nothing_for_what_it_sends_back() {
    for key in [None, keyed()] {
        let mut reflector = reflector(key.clone());
        let mut packet = asked(0, key.as_ref());
        let ready = reflector.take(&from(0, "192.0.2.7:7007"), &mut packet).unwrap();
        ready.seal(&mut packet, Wall(1_700_000_000_000_000_001), key.as_ref());
        let again = reflector.take(&from(0, "192.0.2.7:7007"), &mut packet);
        assert_eq!(again.unwrap_err(), Refused::Answer);
    }
}

#[test]
fn a_service_that_answers_whatever_comes_is_not_made_to_by_a_forged_port() {
    let mut reflector = reflector(None);
    // None; echo, daytime, quotes, characters, DNS, NTP, SNMP, LDAP, STAMP, the last one; our own.
    for port in [0, 7, 13, 17, 19, 53, 123, 161, 389, 862, 1023, DEFAULT_PORT] {
        let refused = reflector.take(&incoming(0, port), &mut request(0, 1)).unwrap_err();
        assert_eq!(refused, Refused::Loop, "{port}");
    }
    assert_eq!(reflector.sessions(), 0);
    for port in [1024, 14_232, 14_234, 32_768, 65_535] {
        assert!(reflector.take(&incoming(0, port), &mut request(0, 1)).is_ok(), "{port}");
    }
}

#[test]
fn a_recorded_packet_draws_no_second_answer() {
    for key in [None, keyed()] {
        let mut reflector = reflector(key.clone());
        let sender = "192.0.2.1:40000";
        reflector.take(&from(0, sender), &mut asked(5, key.as_ref())).unwrap();
        for n in 0..100 {
            let refused = reflector.take(&from(n, sender), &mut asked(5, key.as_ref())).unwrap_err();
            assert_eq!(refused, Refused::Repeated, "{n}");
        }
        // What was recorded long ago is older than all that is remembered.
        reflector.take(&from(0, sender), &mut asked(100_000, key.as_ref())).unwrap();
        let refused = reflector.take(&from(0, sender), &mut asked(6, key.as_ref())).unwrap_err();
        assert_eq!(refused, Refused::Old);
        assert_eq!(reflector.counts().answered, 2);
    }
}

#[test]
fn a_recorded_packet_with_a_proof_draws_no_answer_to_a_forged_address_nor_later() {
    let mut reflector = reflector(keyed());
    reflector.take(&from(0, "192.0.2.1:40000"), &mut proven(5, 1)).unwrap();
    for victim in ["198.51.100.1:40000", "192.0.2.1:40001", "[2001:db8::1]:40000"] {
        let refused = reflector.take(&from(0, victim), &mut proven(5, 1)).unwrap_err();
        assert_eq!((refused, reflector.sessions()), (Refused::Repeated, 1), "{victim}");
    }
    // A session that may begin with any number, and one that was forgotten.
    for later in [NEW_START, IDLE] {
        let refused = reflector.take(&from(later.nanos(), "192.0.2.1:40000"), &mut proven(5, 1));
        assert_eq!(refused.unwrap_err(), Refused::Repeated, "{later}");
    }
}

#[test]
fn a_sender_that_was_restarted_waits_ten_seconds_for_its_first_answer_at_most() {
    for key in [None, keyed()] {
        let mut reflector = reflector(key.clone());
        let mut take = |now: Span, packet: &mut [u8]| {
            reflector.take(&from(now.nanos(), "192.0.2.1:40000"), packet).err()
        };
        for seq in 5_000..5_010 {
            assert_eq!(take(Span(0), &mut asked(seq, key.as_ref())), None);
        }
        // Packets that are not answered do not make it wait for longer.
        for tenth in 1..100 {
            let refused = take(Span::from_millis(100 * tenth), &mut asked(0, key.as_ref()));
            assert_eq!(refused, Some(Refused::Old), "{tenth}");
        }
        assert_eq!(take(NEW_START, &mut asked(0, key.as_ref())), None);
        assert_eq!(take(NEW_START, &mut asked(1, key.as_ref())), None);
    }
}

#[test]
fn senders_behind_one_address_and_packets_out_of_order_are_all_answered() {
    let mut reflector = reflector(None);
    for seq in (0..1000).rev() {
        for sender in ["192.0.2.1:40000", "192.0.2.1:40001", "192.0.2.2:40000"] {
            let now = i64::from(1000 - seq) * 1_000_000;
            // Of those who know only RFC 8762 none has a number of its session.
            assert!(reflector.take(&from(now, sender), &mut request(seq, 0)).is_ok(), "{seq} of {sender}");
        }
    }
    assert_eq!(reflector.sessions(), 3);
}

#[test]
fn a_packet_doubled_on_its_way_is_counted_for_its_sender_and_one_over_the_rate_is_not() {
    let settings = ReflectorSettings { most_per_second: 20, ..Default::default() };
    let mut reflector = Reflector::new(settings);
    let mut counted = |now: i64, seq: u32| {
        let mut packet = [0; 60];
        packet[..44].copy_from_slice(&request(seq, 1));
        let questions = tlv::Questions::fitting(&[tlv::Question::Counters], 16, None);
        questions.emit(&mut packet[44..], None, seq, 1);
        let taken = reflector.take(&incoming(now, 5000), &mut packet);
        taken.map(|_| {
            let counters = tlv::told(&packet[44..], None, 0).counters.unwrap();
            (counters.received, counters.sent)
        })
    };
    assert_eq!(counted(0, 0), Ok((1, 1)));
    assert_eq!(counted(0, 0), Err(Refused::Repeated));
    assert_eq!(counted(0, 1), Ok((3, 2)));
    assert_eq!(counted(0, 2), Err(Refused::Rate));
    assert_eq!(counted(1_000_000_000, 3), Ok((4, 3)));
}

#[test]
fn whatever_ports_are_forged_one_host_is_sent_no_more_than_its_rate() {
    let rates = RateLimits {
        per_host: Rate { per_second: 10, burst: 10 },
        all: Rate { per_second: 100, burst: 12 },
        hosts: 4,
    };
    let mut reflector = Reflector::new(ReflectorSettings { rates, ..Default::default() });
    let mut flood = |now: i64, address: &str| {
        (0..1000)
            .filter(|n| {
                let incoming = from(now, &format!("{address}:{}", 20_000 + n));
                reflector.take(&incoming, &mut request(0, 1)).is_ok()
            })
            .count()
    };
    assert_eq!(flood(0, "192.0.2.1"), 10);
    assert_eq!(flood(0, "192.0.2.2"), 2, "what is left of all");
    assert_eq!(flood(1_000_000_000, "[2001:db8::1]"), 10);
    let counts = reflector.counts();
    assert_eq!(counts.refused(Refused::AllRate), 998);
    assert_eq!(counts.refused(Refused::HostRate), 990 + 990);
}

#[test]
fn one_address_does_not_take_the_sessions_of_all() {
    let settings =
        ReflectorSettings { most_sessions: 8, most_sessions_per_host: 3, ..ReflectorSettings::default() };
    let mut reflector = Reflector::new(settings);
    let mut begin = |address: &str, port: u16| {
        reflector.take(&from(0, &format!("{address}:{port}")), &mut request(0, 1)).err()
    };
    for port in 2000..2100 {
        assert_eq!(begin("192.0.2.1", port), (port >= 2003).then_some(Refused::Full), "{port}");
    }
    // A site of many networks takes what is free, and nothing of the others.
    for network in 0..9 {
        let refused = begin(&format!("[2001:db8:0:{network}::1]"), 2000);
        let want = if network < 5 { None } else { Some(Refused::Full) };
        assert_eq!(refused, want, "{network}");
    }
    // All eight are taken. Whoever holds most gives one up for somebody who holds two less.
    assert_eq!(begin("192.0.2.2", 2000), None);
    assert_eq!(begin("192.0.2.2", 2001), None);
    assert_eq!(begin("192.0.2.2", 2002), Some(Refused::Full));
    assert_eq!(reflector.sessions(), 8);
}

/// With a packet each in five minutes 4096 forged addresses kept every new sender out.
#[test]
fn forged_addresses_that_ask_once_keep_others_out_for_ten_seconds_and_end_no_session() {
    let second = 1_000_000_000;
    let mut reflector = Reflector::new(ReflectorSettings { most_sessions: 4, ..Default::default() });
    let mut take = |now: i64, address: &str, seq: u32| {
        let taken = reflector.take(&from(now * second, address), &mut request(seq, 1)).err();
        (taken, reflector.sessions())
    };
    assert_eq!(take(0, "192.0.2.1:40000", 0), (None, 1));
    for (n, forged) in (2..).zip(["203.0.113.1:5000", "203.0.113.2:5000", "203.0.113.3:5000"]) {
        assert_eq!(take(0, forged, 0), (None, n));
    }
    for seq in 1..10 {
        assert_eq!(take(i64::from(seq), "192.0.2.1:40000", seq), (None, 4));
    }
    assert_eq!(take(9, "198.51.100.1:40000", 0), (Some(Refused::Full), 4));
    assert_eq!(take(10, "198.51.100.1:40000", 0), (None, 2));
    // The one that went on is known still.
    assert_eq!(take(10, "192.0.2.1:40000", 9), (Some(Refused::Repeated), 2));
}

#[test]
fn who_is_refused_for_the_rate_takes_no_place() {
    let one = Rate { per_second: 1, burst: 1 };
    let rates = RateLimits { per_host: one, all: one, hosts: 9 };
    let settings = ReflectorSettings { most_sessions: 2, rates, ..ReflectorSettings::default() };
    let mut reflector = Reflector::new(settings);
    for n in 0..100 {
        let refused = reflector.take(&incoming(0, 5000 + n), &mut request(0, 1)).err();
        assert_eq!(refused, (n > 0).then_some(Refused::HostRate), "{n}");
    }
    let later = NEW_START.nanos();
    assert!(reflector.take(&incoming(later, 6000), &mut request(0, 1)).is_ok());
    assert_eq!(reflector.sessions(), 2);
}

#[test]
fn an_answer_has_no_more_bytes_than_its_request() {
    for length in [41, 42, 43, 44, 45, 48, 100, 1472] {
        let mut packet = vec![0; length];
        packet[..41].copy_from_slice(&request(0, 1)[..41]);
        let ready = reflector(None).take(&incoming(0, 5000), &mut packet).unwrap();
        ready.seal(&mut packet, Wall(0), None);
        assert_eq!(packet.len(), length);
    }
}

//! Who is answered with what, and who is not.

use super::*;

const TOKEN: Token = Token([5; 16]);
const ECHO: Purpose = Purpose::Echo { longest: 100, response: None, dscp: 0 };

fn here() -> SocketAddr {
    "192.0.2.1:1000".parse().unwrap()
}

fn there() -> SocketAddr {
    "192.0.2.2:1000".parse().unwrap()
}

fn table(purpose: Purpose) -> FlowTable {
    let table = FlowTable::new([9; 32]);
    table.expect(TOKEN, 1, purpose, HeaderFields::default());
    table
}

fn request(kind: Kind, token: Token, cookie: Token) -> [u8; 64] {
    Setup { token, test: 1, cookie }.emit_request(kind)
}

fn knock(table: &FlowTable, from: SocketAddr) -> Token {
    let Deed::Answer(answer) = table.judge(&request(Kind::Knock, TOKEN, Token::default()), from, None) else {
        panic!("no cookie");
    };
    Setup::parse(&Header::parse(&answer).unwrap(), &answer).unwrap().cookie
}

fn enter(table: &FlowTable, from: SocketAddr) -> Arc<Flow> {
    let cookie = knock(table, from);
    match table.judge(&request(Kind::Enter, TOKEN, cookie), from, None) {
        Deed::Welcome(_, token, 1, flow) if token == TOKEN => flow,
        other => panic!("{other:?}"),
    }
}

fn echo_request(flow: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.max(HEADER_LEN)];
    Header { kind: Kind::EchoRequest, flow, seq: 0, sent_at: 0 }.emit(&mut bytes);
    bytes.truncate(length);
    bytes
}

fn reason(table: &FlowTable, bytes: &[u8], from: SocketAddr) -> Option<Reason> {
    let before = Reason::ALL.map(|reason| table.dropped(reason));
    let deed = table.judge(bytes, from, None);
    let changed = Reason::ALL.into_iter().find(|reason| table.dropped(*reason) > before[*reason as usize]);
    assert_eq!(changed.is_some(), matches!(deed, Deed::Drop));
    changed
}

#[test]
fn a_cookie_opens_the_door_for_its_own_address_only() {
    let table = table(ECHO);
    let cookie = knock(&table, here());
    let stolen = request(Kind::Enter, TOKEN, cookie);
    assert_eq!(reason(&table, &stolen, there()), Some(Reason::Cookie));
    assert_eq!(reason(&table, &request(Kind::Enter, TOKEN, Token::default()), here()), Some(Reason::Cookie));
    assert_eq!(reason(&table, &stolen, here()), None);
}

#[test]
fn who_has_no_token_gets_no_answer_at_all() {
    let table = table(ECHO);
    for kind in [Kind::Knock, Kind::Enter] {
        let bytes = request(kind, Token([6; 16]), Token::default());
        assert_eq!(reason(&table, &bytes, here()), Some(Reason::Unknown));
    }
    table.forget(TOKEN, 1);
    let bytes = request(Kind::Knock, TOKEN, Token::default());
    assert_eq!(reason(&table, &bytes, here()), Some(Reason::Unknown));
}

#[test]
fn entering_again_gives_the_same_flow_and_no_second_event() {
    let table = table(ECHO);
    let flow = enter(&table, here());
    let again = request(Kind::Enter, TOKEN, knock(&table, here()));
    let Deed::Answer(answer) = table.judge(&again, here(), None) else { panic!("not answered") };
    assert_eq!(Header::parse(&answer).unwrap().flow, flow.number);
    let second = request(Kind::Enter, TOKEN, knock(&table, there()));
    assert_eq!(reason(&table, &second, there()), Some(Reason::Address));
}

#[test]
fn echoes_are_for_the_flows_address_within_the_plan() {
    let table = table(ECHO);
    let flow = enter(&table, here()).number;
    let rows = [
        (echo_request(flow, 44), here(), None),
        (echo_request(flow, 100), here(), None),
        (echo_request(flow, 44), there(), Some(Reason::Address)),
        (echo_request(flow ^ 1, 44), here(), Some(Reason::Unknown)),
        (echo_request(0, 44), here(), Some(Reason::Unknown)),
        (echo_request(flow, 43), here(), Some(Reason::Short)),
        (echo_request(flow, 101), here(), Some(Reason::Plan)),
        (echo_request(flow, 23), here(), Some(Reason::Short)),
        (b"GET / HTTP/1.1\r\nHost: example\r\n".to_vec(), here(), Some(Reason::Foreign)),
    ];
    for (n, (bytes, from, want)) in rows.into_iter().enumerate() {
        assert_eq!(reason(&table, &bytes, from), want, "row {n}");
    }
    table.forget(TOKEN, 1);
    assert_eq!(reason(&table, &echo_request(flow, 44), here()), Some(Reason::Unknown));
}

#[test]
fn a_plan_with_a_response_length_answers_requests_without_room_for_stamps() {
    let table = table(Purpose::Echo { longest: 100, response: Some(1400), dscp: 7 });
    let flow = enter(&table, here()).number;
    for length in [24, 43, 44, 100] {
        match table.judge(&echo_request(flow, length), here(), None) {
            Deed::Echo { response: 1400, dscp: 7, flow: found } => assert_eq!(found.number, flow),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reason(&table, &echo_request(flow, 101), here()), Some(Reason::Plan));
    // Only a plan of short requests is asked for by address alone.
    assert_eq!(reason(&table, &[1], here()), Some(Reason::Short));
}

#[test]
fn short_requests_belong_to_the_flow_of_their_address() {
    let table = table(Purpose::Echo { longest: 8, response: Some(64), dscp: 0 });
    let flow = enter(&table, here()).number;
    match table.judge(&[9], here(), None) {
        Deed::Echo { response: 64, flow: found, .. } => assert_eq!(found.number, flow),
        other => panic!("{other:?}"),
    }
    let rows: [(&[u8], _, _); 4] = [
        (&[0; 8], here(), None),
        (&[0; 9], here(), Some(Reason::Plan)),
        (&[], here(), Some(Reason::Short)),
        (&[9], there(), Some(Reason::Short)),
    ];
    for (n, (bytes, from, want)) in rows.into_iter().enumerate() {
        assert_eq!(reason(&table, bytes, from), want, "row {n}");
    }
    // A second one from there could not be told from the first.
    let purpose = Purpose::Echo { longest: 8, response: Some(64), dscp: 0 };
    table.expect(TOKEN, 2, purpose, HeaderFields::default());
    let setup = |kind, cookie| Setup { token: TOKEN, test: 2, cookie }.emit_request(kind);
    let Deed::Answer(answer) = table.judge(&setup(Kind::Knock, Token::default()), here(), None) else {
        panic!("no cookie");
    };
    let cookie = Setup::parse(&Header::parse(&answer).unwrap(), &answer).unwrap().cookie;
    assert_eq!(reason(&table, &setup(Kind::Enter, cookie), here()), Some(Reason::Address));
    table.forget(TOKEN, 1);
    assert_eq!(reason(&table, &[9], here()), Some(Reason::Short));
}

#[test]
fn a_stream_is_no_echo() {
    let table = table(Purpose::Stream);
    let flow = enter(&table, here()).number;
    assert_eq!(reason(&table, &echo_request(flow, 44), here()), Some(Reason::Plan));
}

#[test]
fn what_only_a_responder_sends_is_not_taken() {
    let table = table(ECHO);
    for kind in [Kind::Cookie, Kind::Entered, Kind::EchoReply] {
        let mut bytes = echo_request(1, 64);
        bytes[2] = kind as u8;
        assert_eq!(reason(&table, &bytes, here()), Some(Reason::Kind));
    }
}

#[test]
fn an_echo_service_that_sends_an_answer_back_gets_nothing_for_it() {
    for purpose in [ECHO, Purpose::Echo { longest: 8, response: Some(64), dscp: 0 }, Purpose::Stream] {
        let table = table(purpose);
        // A session's owner has forged the service's address in what draws these.
        let echo = here();
        let knocks = request(Kind::Knock, TOKEN, Token::default());
        let Deed::Answer(cookie) = table.judge(&knocks, echo, None) else { panic!("no cookie") };
        assert!(cookie.len() <= knocks.len());
        assert_eq!(reason(&table, &cookie, echo), Some(Reason::Kind));
        let enters = request(Kind::Enter, TOKEN, knock(&table, echo));
        let Deed::Welcome(entered, ..) = table.judge(&enters, echo, None) else { panic!("not let in") };
        assert!(entered.len() <= enters.len());
        assert_eq!(reason(&table, &entered, echo), Some(Reason::Kind));
    }
}

#[test]
fn a_link_local_address_of_several_links_is_that_of_the_link_its_prober_is_on() {
    let flow = |peer: SocketAddr, local: &str| Flow {
        number: 1,
        peer,
        local: Some(local.parse().unwrap()),
        answered: AtomicU64::new(0),
        header: HeaderFields::default(),
        meter: None,
        purpose: ECHO,
    };
    let peer = std::net::SocketAddrV6::new("fe80::2".parse().unwrap(), 1000, 0, 7);
    let spoken_to = flow(peer.into(), "fe80::1").spoken_to().unwrap();
    assert_eq!((spoken_to.ip().to_string(), spoken_to.zone()), ("fe80::1".to_owned(), Some(7)));
    assert_eq!(flow(there(), "192.0.2.1").spoken_to().unwrap().zone(), None);
}

//! One end alone, which is told what comes and asked what it does.

use netaware_wire::Token;
use netaware_wire::dual::Join;

use super::*;

const BEGIN: Mono = Mono(5_000_000_000);

fn after(millis: i64) -> Mono {
    BEGIN + Span::from_millis(millis)
}

fn alone(side: Side) -> Session {
    Session::new(setting(side), BEGIN)
}

/// Both versions work, and IPv6 is used.
fn up(side: Side) -> Session {
    let mut end = alone(side);
    end.come_up(BEGIN, V6);
    end.come_up(BEGIN, V4);
    end
}

fn events(end: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| end.event()).collect()
}

#[test]
fn hellos_come_ever_more_seldom() {
    let patience = Span::from_secs(100);
    let mut end = Session::new(Setting { patience, ..setting(Side::Opener) }, BEGIN);
    assert_eq!(end.wake_at(), Some(BEGIN + patience), "nothing is greeted yet");
    end.reach(BEGIN, V6);
    let head = DatagramHead::set_up(DatagramKind::Hello, V6, 77);
    let body = DatagramBody::Hello { speaks: (1, 1), join: Join::New, cookie: Token::default() };
    for millis in [0, 250, 750, 1750, 3750, 7750, 12_750, 17_750] {
        assert_eq!(end.wake_at(), Some(after(millis)));
        let hello = end.poll(after(millis)).unwrap();
        assert_eq!(DatagramHead::parse(hello.bytes()), Ok((head, body)));
        assert!(end.poll(after(millis)).is_none());
    }
    assert_eq!((end.greetings(V4), end.greetings(V6)), (0, 8));
    end.close();
    assert_eq!(end.wake_at(), None);
}

#[test]
fn an_opener_greets_what_it_wants_and_does_not_have() {
    let greets = |end: &Session| [V4, V6].map(|ip| end.greets(ip));
    // What is wanted, which versions are greeted for it, and which once IPv6 works.
    let rows = [
        (Wanted::Each, [true, true], [true, false]),
        (Wanted::First, [true, true], [false, false]),
        (Wanted::Only(V4), [true, false], [true, false]),
    ];
    for (wanted, before, then) in rows {
        let mut end = Session::new(Setting { wanted, ..setting(Side::Opener) }, BEGIN);
        end.reach(BEGIN, V4);
        end.reach(BEGIN, V6);
        assert_eq!(greets(&end), before, "{wanted:?}");
        end.come_up(after(10), V6);
        assert_eq!(greets(&end), then, "{wanted:?}");
    }
    let mut acceptor = alone(Side::Acceptor);
    acceptor.reach(BEGIN, V4);
    assert_eq!(greets(&acceptor), [false; 2]);
}

#[test]
fn the_version_that_is_not_preferred_waits_for_the_other_one_while_that_is_tried() {
    let mut end = alone(Side::Opener);
    end.reach(BEGIN, V4);
    end.reach(BEGIN, V6);
    assert_eq!([V4, V6].map(|ip| end.path(ip).greet_at), [BEGIN; 2]);
    end.reach(after(10), V4);
    assert_eq!(end.path(V4).greet_at, after(260));
    end.come_up(after(20), V6);
    end.reach(after(30), V4);
    assert_eq!(end.path(V4).greet_at, after(30));
}

#[test]
fn a_version_without_a_way_hurries_the_other_one_or_is_tried_later_where_the_peer_is_known() {
    let reaching = || {
        let mut end = alone(Side::Opener);
        end.reach(BEGIN, V6);
        end.reach(BEGIN, V4);
        end
    };
    let stands = |end: &Session| [V4, V6].map(|ip| (end.path(ip).standing, end.path(ip).greet_at));
    let mut unknown = reaching();
    unknown.unreachable(after(10), V6);
    assert_eq!(stands(&unknown), [(Standing::Greeting, after(10)), (Standing::Unused, BEGIN)]);

    let mut known = reaching();
    let welcome = DatagramBody::Welcome { version: DATAGRAM_VERSION };
    known.take(after(20), &DatagramHead::set_up(DatagramKind::Welcome, V4, 77), &welcome);
    known.unreachable(after(30), V6);
    known.unreachable(after(40), V4);
    // It is silent already.
    known.unreachable(after(50), V4);
    assert_eq!(stands(&known), [(Standing::Silent, after(40)), (Standing::Greeting, after(5030))]);
}

#[test]
fn answers_that_nobody_asked_for_change_nothing() {
    let answer = |end: &mut Session, ip, body: DatagramBody| {
        let head = DatagramHead::set_up(body.kind(), ip, 77);
        assert_eq!(end.take(after(10), &head, &body), Taken::Nothing);
    };
    let stands = |end: &Session| [V4, V6].map(|ip| (end.path(ip).standing, end.path(ip).cookie));
    let (none, cookie) = (Token::default(), Token([7; 16]));
    let mut end = alone(Side::Opener);
    end.reach(BEGIN, V6);
    answer(&mut end, V4, DatagramBody::Cookie(cookie));
    answer(&mut end, V4, DatagramBody::Welcome { version: DATAGRAM_VERSION });
    answer(&mut end, V6, DatagramBody::Welcome { version: DATAGRAM_VERSION + 1 });
    answer(&mut end, V6, DatagramBody::Unknown);
    assert_eq!(stands(&end), [(Standing::Unused, none), (Standing::Greeting, none)]);

    answer(&mut end, V6, DatagramBody::Cookie(cookie));
    answer(&mut end, V6, DatagramBody::Welcome { version: DATAGRAM_VERSION });
    // It works now, and the peer knows the session: that it has no room for another one is no
    // matter.
    answer(&mut end, V6, DatagramBody::Cookie(Token([8; 16])));
    answer(&mut end, V6, DatagramBody::Refused(Refusal::Stream));
    end.reach(after(10), V4);
    answer(&mut end, V4, DatagramBody::Refused(Refusal::Busy));
    assert_eq!(stands(&end), [(Standing::Greeting, none), (Standing::Up, cookie)]);
    assert_eq!((events(&mut end), end.ended()), (vec![Event::Up(V6)], None));

    let mut unknown = alone(Side::Opener);
    unknown.reach(BEGIN, V6);
    answer(&mut unknown, V6, DatagramBody::Refused(Refusal::Busy));
    assert_eq!(unknown.ended(), Some(End::Refused(Refusal::Busy)));
}

#[test]
fn datagrams_go_both_ways_until_the_new_one_is_told_to_work_or_the_overlap_ends() {
    let carries = |end: &Session| [V4, V6].map(|ip| end.carries(ip));
    let idle = up(Side::Acceptor);
    assert_eq!((carries(&idle), idle.doubled(BEGIN)), ([false, true], None));
    // Two have gone over IPv4 before, so that the third proves that the turn works.
    let turned = || {
        let mut end = up(Side::Acceptor);
        end.path_mut(V4).number(BEGIN, false);
        end.path_mut(V4).number(BEGIN, false);
        assert_eq!(end.switch(BEGIN, V4), Ok(1));
        end
    };
    let mut by_time = turned();
    assert_eq!((by_time.doubled(after(499)), by_time.doubled(after(500))), (Some(V6), None));
    by_time.end_doubling(after(499));
    assert_eq!(carries(&by_time), [true, true]);
    by_time.end_doubling(after(500));
    assert_eq!(carries(&by_time), [true, false]);

    let mut by_word = turned();
    by_word.path_mut(V4).number(BEGIN, true);
    by_word.path_mut(V4).told(after(1), Came { highest: 2, received: 2 }).unwrap();
    by_word.end_doubling(after(1));
    assert_eq!(carries(&by_word), [true, true]);
    by_word.path_mut(V4).told(after(2), Came { highest: 3, received: 3 }).unwrap();
    by_word.end_doubling(after(2));
    assert_eq!(carries(&by_word), [true, false]);

    let mut left = turned();
    left.path_mut(V6).fall_silent(after(1), Span::from_millis(500));
    assert_eq!(left.doubled(after(2)), None);
}

#[test]
fn a_turn_away_from_a_loss_or_without_an_overlap_goes_one_way_and_a_wish_without_an_answer_ends() {
    let mut lost = up(Side::Acceptor);
    lost.turn(BEGIN, V4, Reason::Loss);
    assert!(lost.current() == Some(V4) && lost.doubling.is_none() && !lost.is_turning());

    let mut end = Session::new(Setting { overlap: Span::ZERO, ..setting(Side::Acceptor) }, BEGIN);
    end.come_up(BEGIN, V6);
    end.come_up(BEGIN, V4);
    assert_eq!(end.switch(BEGIN, V4), Ok(1));
    assert!(end.doubling.is_none() && end.is_turning(), "its wish has no answer yet");
    end.give_up_wish(Mono(BEGIN.0 + 4_999_999_999));
    assert!(end.is_turning());
    end.give_up_wish(after(5000));
    assert!(!end.is_turning());
    let turned = Event::Turned { from: V6, to: V4, reason: Reason::OwnWish };
    let ended = Event::WishEnded { serial: 1, outcome: Outcome::Down };
    assert_eq!(events(&mut end), [Event::Up(V6), Event::Up(V4), turned, ended]);
}

#[test]
fn what_has_not_left_is_numbered_anew_and_what_cannot_leave_goes_the_other_way() {
    let mut end = up(Side::Acceptor);
    // Its clock shows 5 s, and 12,345 us more to the peer.
    let (kind, sent_at) = (DatagramKind::Data, 5_012_345);
    let head = |ip| DatagramHead { kind, ip, sequence: 1, session: 77, sent_at, number: 1 };
    assert_eq!(end.send(BEGIN, 10), Ok([Some(head(V6)), None]));
    end.withdraw(V6);
    assert_eq!((end.status().sent, end.status().v6.sent), (0, 0));
    assert_eq!(end.send(BEGIN, 10), Ok([Some(head(V6)), None]));
    assert!(end.not_sent(BEGIN, V6));
    assert_eq!(end.send(BEGIN, 10), Ok([Some(head(V4)), None]));
    assert!(!end.not_sent(BEGIN, V4), "neither works");
    assert!(!end.not_sent(BEGIN, V6), "neither works");
}

#[test]
fn what_comes_is_counted_where_it_came_and_once_for_the_application() {
    let mut end = alone(Side::Acceptor);
    end.joined(BEGIN, V6);
    // Version, sequence there, number of the application's, and what that is.
    let rows = [
        (V4, 1, 1, Taken::Nothing),
        (V6, 1, 9_000, Taken::Payload),
        (V6, 2, 9_000, Taken::Nothing),
        // As far behind as cannot be told, and one less.
        (V6, 3, 808, Taken::Nothing),
        (V6, 4, 809, Taken::Payload),
        // A copy that the network made.
        (V6, 4, 9_001, Taken::Nothing),
        (V6, 6, 9_001, Taken::Payload),
    ];
    for (row, (ip, sequence, number, taken)) in rows.into_iter().enumerate() {
        let head = DatagramHead { kind: DatagramKind::Data, ip, sequence, session: 77, sent_at: 0, number };
        assert_eq!(end.take(BEGIN, &head, &DatagramBody::Data), taken, "row {row}");
    }
    let v4 = VersionStatus {
        standing: Standing::Unused,
        sent: 0,
        confirmed: 0,
        lost: None,
        received: 0,
        missing: 0,
        repeated: 0,
        round_trip: None,
        forward_delay: None,
        reverse_delay: None,
    };
    let (standing, reverse_delay) = (Standing::Up, Some(Span::ZERO));
    let v6 = VersionStatus { standing, received: 5, missing: 1, repeated: 1, reverse_delay, ..v4 };
    let (ended, current) = (None, Some(V6));
    let expected = SessionStatus { ended, current, v4, v6, sent: 0, delivered: 3, repeated: 1, late: 1 };
    assert_eq!(end.status(), expected);
    let under_way = VersionStatus { sent: 10, confirmed: 5, lost: Some(2), ..v4 };
    assert_eq!((under_way.unconfirmed(), v6.unconfirmed()), (3, 0));
}

#[test]
fn where_neither_works_the_first_that_comes_up_again_is_used() {
    let mut end = up(Side::Acceptor);
    assert!(!end.is_turning() && up(Side::Opener).is_turning(), "the opener wishes for what came first");
    end.fall_silent(after(10), V4);
    end.fall_silent(after(20), V6);
    assert_eq!((end.current(), end.silent_since), (Some(V6), Some(after(20))));
    end.come_up(after(30), V4);
    assert_eq!((end.current(), end.silent_since), (Some(V4), None));
    let turned = Event::Turned { from: V6, to: V4, reason: Reason::Loss };
    let (silent4, silent6) = (Event::Silent(V4), Event::Silent(V6));
    let (up4, up6) = (Event::Up(V4), Event::Up(V6));
    assert_eq!(events(&mut end), [up6, up4, silent4, silent6, up4, turned]);

    (1..=300).for_each(|serial| end.note(Event::WishEnded { serial, outcome: Outcome::Down }));
    let kept = events(&mut end);
    let oldest = Event::WishEnded { serial: 45, outcome: Outcome::Down };
    assert_eq!((kept.len(), kept[0]), (256, oldest), "of very many the latest");
}

#[test]
fn a_callback_is_asked_once_for_each_look_and_not_while_a_turn_is_under_way() {
    let mut end = up(Side::Acceptor);
    end.set_policy(BEGIN, Some(Rules::of(Use::Media)), true).unwrap();
    assert_eq!(end.wake_at(), Some(BEGIN), "a probe is due, and the first look later");
    end.look(after(499));
    assert_eq!(end.evidence(after(499)), None);
    end.look(after(500));
    let seen = end.evidence(after(500)).map(|evidence| (evidence.at, evidence.present));
    assert_eq!(seen, Some((after(500), V6)));
    assert_eq!(end.evidence(after(500)), None);
    end.look(after(999));
    assert_eq!(end.evidence(after(999)), None);
    end.judge(after(999), Choice::Use(V6));
    assert_eq!(end.decision(), None, "it is used already");
    end.look(after(1000));
    end.switch(after(1000), V4).unwrap();
    assert_eq!(end.evidence(after(1000)), None);

    let mut by_rules = up(Side::Acceptor);
    by_rules.set_policy(BEGIN, Some(Rules::of(Use::Media)), false).unwrap();
    by_rules.look(after(500));
    assert_eq!(by_rules.evidence(after(500)), None);
    by_rules.judge(after(500), Choice::Use(V4));
    assert_eq!(by_rules.current(), Some(V6));
}

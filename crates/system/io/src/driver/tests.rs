//! The driver over loopback, with an engine that only keeps a diary.

use std::collections::HashMap;
use std::net::UdpSocket;

use netaware_units::ClockSource;

use super::*;
use crate::probe_socket::{DontFragment, Stamping};

/// Sends by a plan and writes down what it is told.
#[derive(Default)]
struct Diary {
    plan: Vec<Output<&'static str>>,
    fills: Vec<Tag>,
    handed: HashMap<Tag, Mono>,
    sent: Vec<(Tag, Stamp)>,
    not_sent: Vec<(Tag, NotSent)>,
    heard: Vec<(Vec<u8>, Stamp)>,
    polls_owed: bool,
    last_now: Mono,
    /// Done after so many answers to sends and datagrams in all.
    enough: usize,
    stopped: bool,
    deaf_to_stop: bool,
    ends_at: Option<Mono>,
}

impl Engine for Diary {
    type Event = &'static str;

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        assert!(!self.polls_owed, "handle without poll up to Wait");
        assert!(now >= self.last_now);
        (self.polls_owed, self.last_now) = (true, now);
        match input {
            Input::Wake => {}
            Input::Stop => self.stopped = true,
            Input::Datagram { bytes, rx, .. } => self.heard.push((bytes.to_vec(), rx)),
            Input::Handed { tag, at } => assert_eq!(self.handed.insert(tag, at), None),
            Input::Sent { tag, tx } => self.sent.push((tag, tx)),
            Input::NotSent { tag, why } => self.not_sent.push((tag, why)),
        }
    }

    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<&'static str> {
        if let Some(next) = self.plan.pop() {
            if let Output::Send { len, tag, .. } = next {
                out[..len].fill(tag as u8);
            }
            return next;
        }
        self.polls_owed = false;
        let told = self.sent.len() + self.not_sent.len() + self.heard.len();
        let over = told >= self.enough || self.ends_at.is_some_and(|end| now >= end);
        if (over || self.stopped) && !self.deaf_to_stop {
            return Output::Done;
        }
        Output::Wait(self.ends_at.unwrap_or(now + Span::from_secs(1)))
    }

    fn fill(&mut self, tag: Tag, out: &mut [u8]) -> usize {
        self.fills.push(tag);
        out.fill(tag as u8);
        out.len()
    }
}

fn pair(host: &str, stamping: Stamping) -> (ProbeSocket, ProbeSocket) {
    let [a, b] = [0, 1].map(|_| UdpSocket::bind((host, 0)).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (ProbeSocket::new(a, stamping).unwrap(), ProbeSocket::new(b, stamping).unwrap())
}

fn drive(diary: &mut Diary, socket: &ProbeSocket) -> Drive {
    run(diary, socket, AnswerWait::AwakeForSoonAnswers, &StopFlag::new(), &mut |_| {}).unwrap()
}

fn send(tag: Tag, due: Mono) -> Output<&'static str> {
    Output::Send { len: 64, tag, due }
}

#[test]
fn every_send_is_answered_once_and_none_leaves_before_it_is_due() {
    for (host, stamping) in
        [("127.0.0.1", Stamping::Kernel), ("::1", Stamping::Kernel), ("::1", Stamping::Application)]
    {
        let (a, b) = pair(host, stamping);
        let start = clock::now() + Span::from_millis(5);
        let due = |tag: Tag| start + Span::from_micros(700) * (tag as i64);
        let plan = (0..40).map(|tag| send(tag, due(tag))).collect();
        let mut diary = Diary { plan, enough: 40, ..Diary::default() };
        let drive = drive(&mut diary, &a);
        assert_eq!((drive.sends, drive.not_sent, drive.cut_off), (40, 0, false));
        let mut tags: Vec<Tag> = diary.sent.iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..40).collect::<Vec<_>>());
        let by = if stamping == Stamping::Kernel { ClockSource::Kernel } else { ClockSource::Application };
        for (tag, tx) in &diary.sent {
            assert!(tx.at + tx.error >= due(*tag), "{host} {tag}: {tx:?} before {:?}", due(*tag));
            assert_eq!(tx.by, by);
            if let Some(handed) = diary.handed.get(tag) {
                assert!(*handed >= due(*tag) && *handed <= tx.at + tx.error);
            }
        }
        assert_eq!(diary.handed.len(), if stamping == Stamping::Kernel { 40 } else { 0 });
        let mut buf = [0; 100];
        for tag in 0..40 {
            let arrival = b.try_receive(&mut buf).unwrap().unwrap();
            assert_eq!(buf[..arrival.len], [tag; 64], "in the order of the plan, not of the asking");
        }
    }
}

#[test]
fn a_send_planned_for_the_past_is_late_and_leaves() {
    let (a, b) = pair("::1", Stamping::Kernel);
    let plan = vec![send(1, clock::now() - Span::from_millis(20))];
    let mut diary = Diary { plan, enough: 1, ..Diary::default() };
    let drive = drive(&mut diary, &a);
    assert_eq!((drive.sends, drive.late_sends), (1, 1));
    assert!(drive.worst_lateness >= Span::from_millis(20));
    assert!(b.try_receive(&mut [0; 100]).unwrap().is_some());
}

#[test]
fn a_send_whose_time_is_long_over_stays() {
    let (a, b) = pair("::1", Stamping::Kernel);
    let plan = vec![send(1, clock::now() - Span::from_secs(3))];
    let mut diary = Diary { plan, enough: 1, ..Diary::default() };
    let drive = drive(&mut diary, &a);
    assert_eq!((drive.sends, drive.not_sent), (0, 1));
    assert_eq!(diary.not_sent, [(1, NotSent::Overdue)]);
    assert!(b.try_receive(&mut [0; 100]).unwrap().is_none());
}

#[test]
fn sends_that_were_due_in_a_standstill_do_not_leave_at_once() {
    let (a, _b) = pair("::1", Stamping::Kernel);
    let apart = Span::from_millis(5);
    let start = clock::now() - apart * 300;
    let due = |tag: Tag| start + apart * (tag as i64);
    let plan = (0..310).map(|tag| send(tag, due(tag))).collect();
    let mut diary = Diary { plan, enough: 310, ..Diary::default() };
    let drive = drive(&mut diary, &a);
    assert_eq!(drive.sends + drive.not_sent, 310);
    assert!(diary.not_sent.iter().all(|(_, why)| *why == NotSent::Overdue));
    assert!(drive.not_sent >= 100 && diary.not_sent.iter().any(|(tag, _)| *tag == 1), "{drive:?}");
    let mut handed: Vec<(Tag, Mono)> = diary.handed.iter().map(|(tag, at)| (*tag, *at)).collect();
    handed.sort_unstable_by_key(|(_, at)| *at);
    let late = handed.iter().map(|(tag, at)| *at - due(*tag)).skip(1).max();
    assert!(late.is_none_or(|late| late <= Span::from_secs(1)), "{late:?}");
    for pair in handed.windows(2) {
        assert!(pair[1].1 - pair[0].1 >= apart * 4 / 5, "{pair:?}");
    }
}

#[test]
fn what_is_too_big_is_not_sent_and_what_follows_is() {
    let (a, b) = pair("127.0.0.1", Stamping::Kernel);
    a.set_dont_fragment(DontFragment::Kernel).unwrap();
    let now = clock::now();
    let too_big = Output::Send { len: 65_535, tag: 1, due: now };
    let plan = vec![send(2, now + Span::from_micros(1)), too_big];
    let mut diary = Diary { plan, enough: 2, ..Diary::default() };
    let drive = drive(&mut diary, &a);
    let mtu = a.path_mtu().map(|mtu| ByteCount(u64::from(mtu)));
    assert_eq!(diary.not_sent, [(1, NotSent::TooBig(mtu))]);
    assert_eq!((drive.sends, drive.not_sent, drive.refusals), (1, 1, 0));
    assert_eq!((diary.sent[0].0, diary.sent[0].1.by), (2, ClockSource::Kernel));
    assert!(b.try_receive(&mut [0; 100]).unwrap().is_some());
}

/// What this host's own firewall dropped was counted among the ICMP answers of the path.
#[test]
fn an_error_that_comes_again_at_once_is_no_answer_of_the_path() {
    let error = io::Error::from_raw_os_error;
    assert!(is_of_an_earlier_one(&error(libc::EHOSTUNREACH), &Ok(())));
    assert!(is_of_an_earlier_one(&error(libc::EHOSTUNREACH), &Err(error(libc::EPERM))));
    assert!(!is_of_an_earlier_one(&error(libc::EPERM), &Err(error(libc::EPERM))));
    assert!(!is_of_an_earlier_one(&error(libc::EMSGSIZE), &Err(error(libc::EMSGSIZE))));
}

#[test]
fn a_closed_port_is_counted_and_every_datagram_still_leaves() {
    for host in ["127.0.0.1", "::1"] {
        let (a, b) = pair(host, Stamping::Kernel);
        drop(b);
        let start = clock::now();
        let plan = (0..20).map(|tag| send(tag, start + Span::from_micros(300) * (tag as i64))).collect();
        let mut diary = Diary { plan, enough: 20, ..Diary::default() };
        let drive = drive(&mut diary, &a);
        assert_eq!((drive.sends, drive.not_sent), (20, 0), "{host}");
        assert!(drive.refusals > 0 && drive.last_refusal == Some(libc::ECONNREFUSED));
        assert_eq!(drive.rejections.iter().map(|one| one.count).sum::<u64>(), drive.refusals, "{host}");
        assert_eq!(diary.sent.len(), 20);
    }
}

#[test]
fn a_train_is_filled_datagram_by_datagram() {
    let (a, b) = pair("::1", Stamping::Kernel);
    let due = clock::now() + Span::from_millis(1);
    let gap = Span::from_micros(100);
    let plan = vec![Output::Train { count: 16, len: 200, gap, tag: 100, due }];
    let mut diary = Diary { plan, enough: 16, ..Diary::default() };
    let drive = drive(&mut diary, &a);
    assert_eq!((drive.sends, &diary.fills), (16, &(100..116).collect::<Vec<_>>()));
    let mut buf = [0; 300];
    for tag in 100..116 {
        let arrival = b.try_receive(&mut buf).unwrap().unwrap();
        assert_eq!(buf[..arrival.len], [tag; 200]);
    }
    for (tag, tx) in diary.sent {
        assert!(tx.at + tx.error >= due + gap * (tag as i64 - 100));
    }
}

#[test]
fn a_sent_stamp_comes_before_the_answer() {
    let (a, b) = pair("127.0.0.1", Stamping::Kernel);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = [0; 100];
            let until = clock::now() + Span::from_secs(5);
            let arrival = b.receive(&mut buf, Some(until)).unwrap().unwrap();
            b.send(&buf[..arrival.len]).unwrap();
        });
        let mut diary =
            Diary { plan: vec![send(9, Mono(0).max(clock::now()))], enough: 2, ..Diary::default() };
        let drive = drive(&mut diary, &a);
        assert_eq!((drive.arrivals, drive.stamp_fallbacks, drive.drops), (1, 0, 0));
        let (bytes, rx) = &diary.heard[0];
        assert_eq!((bytes.as_slice(), diary.sent[0].0), ([9; 64].as_slice(), 9));
        assert!(diary.sent[0].1.at < rx.at);
    });
}

#[test]
fn an_engine_is_told_to_stop_once_and_cut_off_if_it_does_not() {
    let (a, _b) = pair("::1", Stamping::Kernel);
    let stop = StopFlag::new();
    stop.raise();
    let mut willing = Diary { enough: 1, ..Diary::default() };
    assert!(!run(&mut willing, &a, AnswerWait::Asleep, &stop, &mut |_| {}).unwrap().cut_off);
    assert!(willing.stopped);
    let mut deaf = Diary { enough: 1, deaf_to_stop: true, ..Diary::default() };
    assert!(run(&mut deaf, &a, AnswerWait::Asleep, &stop, &mut |_| {}).unwrap().cut_off);
}

#[test]
fn events_reach_the_caller_and_waits_end_on_time() {
    let (a, _b) = pair("::1", Stamping::Kernel);
    let ends_at = clock::now() + Span::from_millis(70);
    let plan = vec![Output::Event("begun")];
    let mut diary = Diary { plan, enough: 1, ends_at: Some(ends_at), ..Diary::default() };
    let mut events = Vec::new();
    run(&mut diary, &a, AnswerWait::Asleep, &StopFlag::new(), &mut |event| events.push(event)).unwrap();
    assert_eq!(events, ["begun"]);
    assert!(clock::now() >= ends_at);
}

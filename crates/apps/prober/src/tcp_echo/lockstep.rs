//! A closed loop with one request outstanding: write, read, and again.

use netaware_io::clock;
use netaware_stats::patience::Waiting;

use super::message::{Messages, silence};
use super::{Asked, Course, Ended};

pub(super) fn run(course: &Course<'_>) -> Ended {
    let mut ended = Ended::new(course);
    let mut requests = Messages::new(course.stream, course.sizes.request);
    let mut responses = Messages::new(course.stream, course.sizes.response);
    let mut due = course.start;
    let times = if course.order.waiting == Waiting::Exactly { 1 } else { LOST_IN_A_ROW };
    while !course.is_over(ended.counts.asked, due) {
        let (seq, number) = (ended.counts.asked, course.first + ended.counts.asked);
        let waiting = silence(ended.patience.span() * times, course.stop);
        let sent_at = clock::now();
        ended.counts.asked += 1;
        if let Err(broken) = requests.write(number, &waiting) {
            ended.owed = None;
            ended.broke(sent_at, broken);
            return ended;
        }
        responses.go_on(clock::now());
        match responses.read(number, &waiting) {
            Ok(is_intact) => {
                let at = clock::now();
                if responses.was_away_since(sent_at) {
                    ended.came_unseen(at);
                } else {
                    ended.answered(Asked { seq, due, sent_at }, at, is_intact);
                }
                due = at;
            }
            Err(broken) => {
                ended.owed = Some(responses.missing());
                ended.broke(sent_at, broken);
                return ended;
            }
        }
    }
    ended
}

/// TCP sends a segment that is lost three times in a row again after 1.4 s (time-outs of 0.2, 0.4
/// and 0.8 s), and its answer comes then: the connection does not stand still.
const LOST_IN_A_ROW: i64 = 3;

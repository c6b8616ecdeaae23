//! What a stream's policy sees, and what becomes of its decisions.

use netaware_dual::policy::{Choice, Decision, Evidence, NotDone};
use netaware_io::tcp_info::TcpInfo;
use netaware_record::IpVersion;
use netaware_units::Mono;

use super::State;

impl State {
    pub(super) fn steer(&mut self, now: Mono, seen: &[Option<TcpInfo>; 2]) {
        let Some(steer) = &mut self.steer else { return };
        let busy = self.kept.len() > 0;
        let Some(decision) = steer.look(now, &mut self.stream, seen, busy) else { return };
        self.follow(now, decision);
    }

    fn follow(&mut self, now: Mono, decision: Decision) {
        // Somebody who holds the stream is the better reason: a wish may wait for that alone.
        let not_done = if self.stream.is_settled() || self.stream.is_held() {
            self.stream.switch(now, decision.to).err().map(NotDone::from)
        } else {
            Some(NotDone::Unsettled)
        };
        self.decisions.note(Decision { not_done, ..decision });
    }

    /// What a callback has to judge now; nothing while a switch is under way.
    pub(crate) fn evidence(&mut self, now: Mono) -> Option<Evidence> {
        let present = self.stream.current().filter(|_| self.stream.is_settled())?;
        let up = [IpVersion::V4, IpVersion::V6].map(|ip| self.stream.is_up(ip));
        self.steer.as_mut()?.evidence(now, present, up)
    }

    /// Does what a callback has said.
    pub(crate) fn obey(&mut self, now: Mono, choice: Choice) {
        let (Choice::Use(to), Some(present), Some(steer)) = (choice, self.stream.current(), &self.steer)
        else {
            return;
        };
        if let Some(decision) = steer.called(now, present).filter(|_| to != present) {
            self.follow(now, decision);
            self.write(now);
        }
    }
}

//! What a capture saw, and what it did not, by cause.

use netaware_record::passive::CaptureHealth;
use netaware_units::ByteCount;

/// Counts since the last time they were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames shown.
    pub seen: u64,
    /// Bytes of them on the wire, without checksum.
    pub seen_bytes: u64,
    /// Of those, frames that stand for several packets ([`crate::Frame::segments`]).
    pub merged: u64,
    /// Of those, stamped by the card.
    pub stamped_by_nic: u64,
    /// Passed the filter and found the ring full; exact.
    pub lost_ring: u64,
    /// Times that the kernel stopped filling because the ring was full.
    pub freezes: u64,
    /// Received by the interface and dropped before any capture could see them (its `rx_dropped`).
    /// Packets that the filter would not have wanted are in it: errs high. Of captures that share
    /// an interface only the first tells it.
    pub lost_kernel: u64,
    /// Dropped by the card for want of buffers (`rx_missed_errors` or `rx_fifo_errors`, whichever
    /// is larger); `None` for interfaces that are no cards. Filter and sharing as above.
    pub lost_nic: Option<u64>,
    /// Dropped from the queues between driver and stack of *all* interfaces of the host
    /// (`softnet_stat`): tells the cause where `lost_kernel` is not 0, and is contained in it.
    /// `None` where it cannot be read.
    pub backlog: Option<u64>,
    /// The interface was down, without carrier or gone for some of the time.
    pub link_was_down: bool,
    /// Its MTU changed.
    pub mtu_changed: bool,
    /// A file said that whoever wrote it lost packets; in `lost_ring` too.
    pub lost_by_writer: u64,
}

impl Counts {
    /// As reports have them. What only tasks know (not IP, malformed, given up) is 0.
    pub fn health(&self) -> CaptureHealth {
        CaptureHealth {
            seen: self.seen,
            seen_bytes: ByteCount(self.seen_bytes),
            lost_ring: self.lost_ring,
            lost_kernel: self.lost_kernel,
            lost_nic: self.lost_nic,
            merged: self.merged,
            link_was_down: self.link_was_down,
            mtu_changed: self.mtu_changed,
            backlog: self.backlog,
            lost_by_writer: self.lost_by_writer,
            stamped_by_nic: self.stamped_by_nic,
            ..CaptureHealth::default()
        }
    }
}

impl From<Counts> for CaptureHealth {
    fn from(counts: Counts) -> Self {
        counts.health()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_explains_a_loss_stands_in_the_report_and_adds_none() {
        let counts = Counts { backlog: Some(3), lost_by_writer: 2, mtu_changed: true, ..Counts::default() };
        let health = counts.health();
        assert_eq!((health.backlog, health.lost_by_writer, health.mtu_changed), (Some(3), 2, true));
        assert_eq!(health.lost(), 0);
    }

    #[test]
    fn every_loss_stands_in_the_report() {
        let counts =
            Counts { seen: 10, lost_ring: 1, lost_kernel: 2, lost_nic: Some(4), ..Counts::default() };
        let health = CaptureHealth::from(counts);
        assert_eq!((health.seen, health.lost(), health.lost_nic), (10, 7, Some(4)));
    }
}

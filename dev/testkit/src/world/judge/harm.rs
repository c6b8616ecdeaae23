//! No harm: never more sent than said, and unresponsive traffic never above 1.25 times what the
//! path carries.
//!
//! Nothing comes on top of that but what a method documents: the first train of capacity and
//! available bandwidth (docs/methods/first-trains.md), the search for the MTU of `test`
//! (docs/methods/path-mtu.md), one transfer of `matrix` (docs/methods/matrix.md), and one packet,
//! because packets are whole. A policer that has credit carries it once.

use netaware_lab::EnteredCount;
use netaware_units::Span;
use serde_json::Value;

use super::{Ask, Bench, Verdict, list, whole};

/// Trains over each version that show what the path carries where no rate is typed
/// (docs/methods/planning.md), and their answers.
const TRAINS_BEFORE: u64 = 64;
/// Unresponsive traffic over what the path carries.
const MOST_LOAD: f64 = 1.25;
/// Packets of the only train that may be more than the path carries in a second.
const FIRST_TRAIN: u64 = 3;
/// Tries of a size in the search for the path MTU, and the sum of the common sizes that are tried
/// at once where the believed one does not pass.
const MTU_TRIES: u64 = 3;
const COMMON_SIZES: u64 = 1500 + 1492 + 1480 + 1472 + 1460 + 1420 + 1400 + 1380 + 1350 + 1280 + 576;
/// Probes of one search: the common sizes at once, each three times, and those that narrow it down.
const MTU_PROBES: u64 = 48;
/// One UDP transfer of `matrix` in this table: ten blocks of 1 kB with their headers.
const MATRIX_TRANSFER: u64 = 10 * (1000 + 48);
/// Datagrams that open a flow or end a stream, in each of the turns of a version.
const AROUND_A_STREAM: u64 = 16;
const TURNS: u64 = 2;

impl Bench<'_> {
    pub(super) fn harm(&mut self, record: Option<&Value>) {
        let took = self.found.took.unwrap_or(Span::from_secs(60)).secs_f64();
        for (direction, entered) in self.found.entered.into_iter().enumerate() {
            let loads = [("UDP", entered.udp), ("ICMP", entered.icmp), ("other packets", entered.other)];
            for (name, count) in loads {
                self.load(name, direction, count, took);
            }
        }
        let udp: u64 = self.found.entered.iter().map(|entered| entered.udp.packets).sum();
        let tcp: u64 = self.found.entered.iter().map(|entered| entered.tcp.packets).sum();
        if self.found.not_read > 2000 && udp > tcp {
            let why = format!(
                "{} packets did not even enter the path: a host sent without a limit",
                self.found.not_read
            );
            self.say(Verdict::Harm, why);
        }
        if let Some(record) = record {
            self.sent_as_said(record);
        }
    }

    fn load(&mut self, name: &str, direction: usize, count: EnteredCount, took: f64) {
        let from = if direction == 0 { "the prober" } else { "the responder" };
        let carries = self.truth.carries(direction).0 as f64 / 8.0;
        let (train, times) = self.documented(name);
        let credit = self.truth.versions.iter().map(|version| version.credit[direction]).max().unwrap_or(0);
        let window = self.window(carries);
        let rows = [
            ("in one second", count.busiest_second, window, train),
            ("in all", count.bytes, took.max(window), train * times),
        ];
        for (when, bytes, seconds, on_top) in rows {
            let allowed = MOST_LOAD * carries * seconds + (on_top + credit + self.packet()) as f64;
            if bytes as f64 > allowed {
                let times = bytes as f64 / (carries * seconds);
                let why =
                    format!("{from} sent {bytes} B of {name} {when}, {times:.1} times what the path carries");
                self.say(Verdict::Harm, why);
            }
        }
    }

    fn packet(&self) -> u64 {
        self.truth.versions.iter().map(|version| u64::from(version.mtu)).max().unwrap_or(1500)
    }

    /// The time over which a rate is counted: a second, or a round trip or ten packets of the
    /// methods that send trains, if these are longer.
    fn window(&self, carries: f64) -> f64 {
        if !matches!(self.ask, Ask::Capacity | Ask::Available) {
            return 1.0;
        }
        let rtt = self.truth.versions.iter().map(|version| version.rtt[1].secs_f64()).fold(1.0, f64::max);
        rtt.max(10.0 * self.packet() as f64 / carries)
    }

    /// Bytes of a documented train that may come on top, and how often in the whole command.
    fn documented(&self, name: &str) -> (u64, u64) {
        let versions = self.truth.reachable().max(1) as u64;
        match self.ask {
            _ if name != "UDP" => (0, 0),
            Ask::Capacity | Ask::Available => (FIRST_TRAIN * self.packet(), versions),
            Ask::Test => {
                let searches = self.truth.versions.iter().any(|version| version.mtu < 1500);
                let sizes = if searches { COMMON_SIZES } else { self.packet() };
                (sizes, MTU_TRIES * versions)
            }
            Ask::Matrix => (MATRIX_TRANSFER, versions),
            _ => (0, 0),
        }
    }

    /// Datagrams that entered the path beyond those of which the record speaks. Of a command that
    /// did not come to its end the record cannot speak.
    fn sent_as_said(&mut self, record: &Value) {
        let is_whole = list(record, "versions").all(|version| version["unreachable"].is_null());
        let versions = || list(record, "versions");
        let streams = |reverse: usize| {
            versions()
                .flat_map(|version| list(version, "udp"))
                .filter(move |stream| super::direction(stream) == reverse)
                .filter_map(|stream| whole(stream, "sent"))
                .sum::<u64>()
        };
        let of =
            |key: &'static str| versions().filter_map(|version| whole(&version[key], "sent")).sum::<u64>();
        let said = match self.ask {
            Ask::Udp | Ask::UdpReverse | Ask::UdpBidir => [streams(0), streams(1)],
            Ask::Latency => [of("latency"); 2],
            Ask::Owd => [of("owd"); 2],
            Ask::Test => {
                let beside: u64 = versions()
                    .flat_map(|version| list(version, "tcp"))
                    .filter_map(|transfer| whole(&transfer["latency_under_load"]["latency"], "sent"))
                    .sum();
                let echoes = of("latency") + beside;
                [echoes + streams(0), echoes + streams(1)]
            }
            _ => return,
        };
        if !is_whole || said == [0, 0] {
            return;
        }
        let trains = match self.ask {
            Ask::Latency | Ask::Owd => 16,
            // Of a search for the path MTU, which may be made twice.
            Ask::Test => MTU_PROBES * 2,
            _ => TRAINS_BEFORE,
        };
        let around = (AROUND_A_STREAM * TURNS + trains) * 2;
        for (direction, said) in said.into_iter().enumerate() {
            let entered = self.found.entered[direction].udp.packets;
            // Only what a host sends by itself: answers may be duplicated on their way to it.
            let most = said + around + if direction == 1 { said / 20 } else { 0 };
            if entered > most {
                self.say(
                    Verdict::Harm,
                    format!("{entered} datagrams entered the path and the record says {said}"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netaware_lab::Entered;
    use serde_json::json;

    use super::super::tests::{found, latency, said, truth, udp};
    use super::super::{Found, Verdict};
    use super::*;

    fn sent(ask: Ask, more: &str, bytes: u64) -> Verdict {
        let udp = EnteredCount { packets: 0, bytes, busiest_second: bytes };
        let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
        said(ask, &truth(more), &Found { entered, ..found(&latency()) }).0
    }

    #[test]
    fn more_than_the_path_carries_is_harm_and_a_packet_is_not() {
        // 10 Mbit/s are 1.25 MB in a second, 1.25 times that are 1,562,500 B.
        let harms = |bytes| sent(Ask::Udp, "", bytes) == Verdict::Harm;
        assert_eq!([1_250_000, 1_564_000, 1_566_000].map(harms), [false, false, true]);
        let silent = Found { not_read: 50_000, ..found(&udp()) };
        assert_eq!(said(Ask::Udp, &truth(""), &silent).0, Verdict::Held, "TCP may fill its own device");
    }

    #[test]
    fn sixty_four_kilobytes_are_no_train_that_a_slow_path_has_to_bear() {
        let is_harm = |ask, bytes| {
            let text = "about = 'x'\n[[hop]]\nrate = '20kbit/s'\ndelay = '20ms'\n";
            let truth = super::super::Truth::of(&netaware_lab::Scenario::parse(text).unwrap());
            let udp = EnteredCount { packets: 0, bytes, busiest_second: bytes };
            let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
            let found = Found { entered, took: Some(Span::from_secs(2)), ..found(&latency()) };
            said(ask, &truth, &found).0 == Verdict::Harm
        };
        // 2500 B in a second; the first train has 4500 B, ten packets take six seconds.
        assert_eq!([4_600, 20_000].map(|bytes| is_harm(Ask::Udp, bytes)), [false, true]);
        assert_eq!([24_000, 40_000].map(|bytes| is_harm(Ask::Capacity, bytes)), [false, true]);
        assert_eq!([15_000, 40_000].map(|bytes| is_harm(Ask::Matrix, bytes)), [false, true]);
    }

    #[test]
    fn more_datagrams_than_the_record_says_are_harm() {
        let sent = |ask, record: &Value, packets: u64| {
            let udp = EnteredCount { packets, bytes: packets * 100, busiest_second: 0 };
            let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
            said(ask, &truth(""), &Found { entered, ..found(record) }).0
        };
        assert_eq!([220, 500].map(|it| sent(Ask::Udp, &udp(), it)), [Verdict::Held, Verdict::Harm]);
        assert_eq!([220, 300].map(|it| sent(Ask::Latency, &latency(), it)), [Verdict::Held, Verdict::Harm]);
        // The main job: its echoes without load and beside transfers, its streams, its searches.
        let mut main = udp();
        main["versions"][0]["latency"] = json!({"sent": 200});
        main["versions"][0]["tcp"] = json!([{"latency_under_load": {"latency": {"sent": 50}}}]);
        let is_harm = |packets| {
            let udp = EnteredCount { packets, bytes: packets * 100, busiest_second: 0 };
            let entered = [Entered { udp, ..Entered::default() }, Entered::default()];
            let found = Found { entered, ..found(&main) };
            said(Ask::Test, &truth(""), &found).1.contains("datagrams entered the path")
        };
        let all = 250 + whole(&main["versions"][0]["udp"][0], "sent").unwrap();
        assert_eq!([all, all + 250, all + 400].map(is_harm), [false, false, true]);
    }
}

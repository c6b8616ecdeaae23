//! The facts that bound what this host can measure: clock source, buffers, congestion controls,
//! interfaces.
//!
//! A fact that cannot be had says why; nothing is guessed. Cheap enough to be read for each record.

#[cfg(any(target_os = "linux", test))]
use netaware_record::Timestamping;
use netaware_record::{
    BufferRange, CongestionControls, Fact, InterfaceFacts, ObservedModeration, SocketBuffers,
};
use netaware_units::ByteCount;

use crate::device::Device;
use crate::interface::all_interfaces;
use crate::{cpu, interrupts, kernel_file, tcp_settings};

/// The kernel's clock source, and all that it could take.
pub fn clock_sources() -> (Fact<String>, Vec<String>) {
    let read = |what| kernel_file::read_line(format!("{CLOCK_SOURCES}/{what}_clocksource"));
    let current = Fact::or(read("current"), format!("{CLOCK_SOURCES} cannot be read"));
    (current, read("available").unwrap_or_default().split_whitespace().map(str::to_owned).collect())
}

/// Share of CPU time that the hypervisor has withheld since the system started.
pub fn steal() -> Fact<f64> {
    Fact::or(cpu::steal_since_boot(), "/proc/stat cannot be read")
}

/// Limits of socket buffers in force.
pub fn socket_buffers() -> SocketBuffers {
    let limits = tcp_settings::socket_buffer_limits();
    let size = |value: Option<ByteCount>, name: &str| {
        Fact::or(value, format!("/proc/sys/net/{name} cannot be read"))
    };
    let range = |value: Option<crate::BufferRange>, name: &str| {
        let value = value.map(|range| BufferRange { min: range.min, default: range.default, max: range.max });
        Fact::or(value, format!("/proc/sys/net/{name} cannot be read"))
    };
    SocketBuffers {
        receive_default: size(limits.receive_default, "core/rmem_default"),
        receive_max: size(limits.receive_max, "core/rmem_max"),
        send_default: size(limits.send_default, "core/wmem_default"),
        send_max: size(limits.send_max, "core/wmem_max"),
        tcp_receive: range(limits.tcp_receive, "ipv4/tcp_rmem"),
        tcp_send: range(limits.tcp_send, "ipv4/tcp_wmem"),
    }
}

/// Congestion controls of TCP.
pub fn congestion_facts() -> CongestionControls {
    let default = Some(tcp_settings::default_congestion_control()).filter(|name| !name.is_empty());
    let available = Some(tcp_settings::congestion_controls()).filter(|names| !names.is_empty());
    CongestionControls {
        default: Fact::or(default, "/proc/sys/net/ipv4/tcp_congestion_control cannot be read"),
        available: Fact::or(available, "/proc/sys/net/ipv4/tcp_available_congestion_control cannot be read"),
    }
}

/// The interfaces to tell of when nobody names one: those with hardware behind them, else all but
/// loopback.
pub fn interfaces_of_interest() -> Vec<String> {
    let hardware = hardware_interfaces();
    if !hardware.is_empty() {
        return hardware;
    }
    all_interfaces().into_iter().filter(|name| name != "lo").collect()
}

/// Interfaces with a card behind them, a hypervisor's included.
pub(crate) fn hardware_interfaces() -> Vec<String> {
    all_interfaces()
        .into_iter()
        .filter(|name| Device::open(name).is_some_and(|device| has_hardware(&device)))
        .collect()
}

#[cfg(target_os = "linux")]
fn has_hardware(device: &Device) -> bool {
    device.bus().is_some_and(|bus| is_a_place(&bus))
}

#[cfg(not(target_os = "linux"))]
fn has_hardware(_: &Device) -> bool {
    false
}

/// Drivers of software devices leave it empty or say what they are; those of cards name a place:
/// "0000:00:04.0", "usb-0000:00:14.0-2", "virtio-mmio".
#[cfg(any(target_os = "linux", test))]
fn is_a_place(bus: &str) -> bool {
    !SOFTWARE.contains(&bus.trim())
}

/// Everything about an interface. `queueing` are its disciplines, which who owns sockets has asked
/// for; `seen` is what was observed of its interrupts, if it was watched.
pub fn interface_facts(
    name: &str,
    queueing: Fact<Vec<String>>,
    seen: Option<&ObservedModeration>,
) -> InterfaceFacts {
    let none = || "no socket to ask the device with";
    let unknown = InterfaceFacts {
        name: name.to_owned(),
        hardware: false,
        driver: Fact::not_known(none()),
        mtu: Fact::not_known(none()),
        link: Fact::not_known(none()),
        offloads: Fact::not_known(none()),
        rings: Fact::not_known(none()),
        moderation: Fact::not_known(none()),
        observed_period: interrupts::observed_period(seen),
        queues: Fact::not_known(none()),
        interrupts: interrupts::of_interface(name),
        queueing,
        timestamping: Fact::not_known(none()),
    };
    match Device::open(name) {
        Some(device) => asked(unknown, &device),
        None => unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn asked(facts: InterfaceFacts, device: &Device) -> InterfaceFacts {
    InterfaceFacts { mtu: Fact::or(device.mtu(), "the system does not tell"), ..facts }
}

#[cfg(target_os = "linux")]
fn asked(facts: InterfaceFacts, device: &Device) -> InterfaceFacts {
    use netaware_record::{Moderation, QueueCounts, RingSizes};
    use netaware_units::{BitRate, Span};

    use crate::describe::active_offloads;
    let silent = "the driver does not tell";
    let speed = device.megabits().map(|megabits| BitRate(u64::from(megabits) * 1_000_000));
    InterfaceFacts {
        hardware: has_hardware(device),
        driver: Fact::or(device.driver(), silent),
        mtu: Fact::or(device.mtu(), silent),
        link: Fact::or(speed, "the driver claims no rate (virtual, or no cable)"),
        offloads: Fact::Known(active_offloads(device)),
        rings: told(device.rings(), |rings| RingSizes {
            receive: rings.receive,
            receive_max: rings.receive_max,
            send: rings.send,
            send_max: rings.send_max,
        }),
        moderation: told(device.wait(), |wait| Moderation {
            receive_wait: Span::from_micros(wait.receive_us.into()),
            receive_packets: wait.receive_packets,
            send_wait: Span::from_micros(wait.send_us.into()),
            send_packets: wait.send_packets,
            adaptive: wait.adaptive_receive != 0,
        }),
        queues: told(device.channels(), |channels| QueueCounts {
            receive: channels.receive,
            send: channels.send,
            combined: channels.combined,
        }),
        timestamping: told(device.stamps(), |stamps| timestamping(stamps.able, stamps.clock)),
        ..facts
    }
}

#[cfg(target_os = "linux")]
fn told<T, U>(answer: Result<T, crate::device::Refused>, of: impl FnOnce(T) -> U) -> Fact<U> {
    use crate::device::Refused;
    match answer {
        Ok(answer) => Fact::Known(of(answer)),
        Err(Refused::Driver) => Fact::not_known("the driver does not tell"),
        Err(Refused::Privilege) => Fact::needs_privilege("only told with CAP_NET_ADMIN"),
        Err(Refused::Gone) => Fact::not_known("the interface is gone"),
    }
}

/// `SOF_TIMESTAMPING_*` of linux/net_tstamp.h.
#[cfg(any(target_os = "linux", test))]
fn timestamping(able: u32, clock: i32) -> Timestamping {
    let has = |bit: u32| able & (1 << bit) != 0;
    Timestamping {
        send_card: has(0),
        send_kernel: has(1),
        receive_card: has(2),
        receive_kernel: has(3),
        clock: u32::try_from(clock).ok(),
    }
}

/// What bridges, tunnels and taps say instead of a place.
#[cfg(any(target_os = "linux", test))]
const SOFTWARE: [&str; 4] = ["", "N/A", "tun", "tap"];
const CLOCK_SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_a_place_on_a_bus() {
        let rows = [
            ("0000:00:04.0", true),
            ("usb-0000:00:14.0-2", true),
            ("vmbus_2-1", true),
            ("1c30000.ethernet", true),
            ("virtio-mmio", true),
            ("", false),
            ("N/A", false),
            ("tap", false),
            ("tun", false),
        ];
        for (bus, want) in rows {
            assert_eq!(is_a_place(bus), want, "{bus:?}");
        }
    }

    #[test]
    fn stamping_bits_are_those_of_the_kernels_header() {
        let software = timestamping(0b1_1010, -1);
        assert!(
            software.send_kernel && software.receive_kernel && !software.send_card && !software.receive_card
        );
        assert_eq!(software.clock, None);
        let card = timestamping(0b101, 2);
        assert!(card.send_card && card.receive_card && !card.receive_kernel);
        assert_eq!(card.clock, Some(2));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn loopback_has_facts_and_reasons_for_what_it_has_not() {
        let facts = interface_facts("lo", Fact::not_known("not asked"), None);
        assert!(!facts.hardware && facts.mtu.known().is_some_and(|mtu| *mtu >= 1280), "{facts:?}");
        assert!(
            facts.timestamping.known().is_some_and(|stamps| stamps.receive_kernel && stamps.clock.is_none())
        );
        for why in [facts.link.why(), facts.moderation.why(), facts.rings.why(), facts.observed_period.why()]
        {
            assert!(why.is_some_and(|why| !why.not_known.is_empty()), "{facts:?}");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_has_only_reasons() {
        for name in ["nosuchdevice", "a name that is too long"] {
            let facts = interface_facts(name, Fact::not_known("not asked"), None);
            assert!(facts.mtu.why().is_some() && facts.rings.why().is_some(), "{facts:?}");
        }
    }
}

//! Questions to a network device, by `ioctl` on a socket: they need no privilege and follow the
//! calling thread's network namespace, which `/sys/class/net` does not.
#![expect(unsafe_code, reason = "device ioctls have no safe wrapper in the standard library")]

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// A network device by name, and the socket to ask about it.
pub(crate) struct Device {
    socket: UnixDatagram,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Device {
    /// `None` if the name is none that a device can have, or no socket can be had. Whether there is
    /// such a device shows in the answers.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let mut terminated = [0; libc::IFNAMSIZ];
        if name.is_empty() || name.len() >= terminated.len() || name.contains('\0') {
            return None;
        }
        for (to, from) in terminated.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // Device ioctls work on sockets of any family; this one exists without IPv4, and std opens
        // it.
        Some(Self { socket: UnixDatagram::unbound().ok()?, name: terminated })
    }

    /// MTU in bytes.
    pub(crate) fn mtu(&self) -> Option<u32> {
        let mut request = self.request();
        // SAFETY: `SIOCGIFMTU` reads the name and writes an integer into `request`, which outlives
        // the call.
        let answer = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
        // SAFETY: the kernel has filled `ifru_mtu`; had it not, the union's bytes would be zero, a
        // valid integer.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        u32::try_from(mtu).ok().filter(|_| answer == 0)
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: `ifreq` is a name and a union of integers, addresses and raw pointers; all-zero
        // bytes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request
    }
}

#[cfg(target_os = "linux")]
pub(crate) use ethtool::{Command, Refused};

/// The part of <linux/ethtool.h> that every user may call; layouts and numbers are fixed kernel
/// ABI.
#[cfg(target_os = "linux")]
mod ethtool {
    use std::io;
    use std::os::fd::AsRawFd;

    use super::Device;

    /// Why a device does not answer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Refused {
        /// Its driver has no such answer.
        Driver,
        /// Only for the privileged.
        Privilege,
        /// There is no such device.
        Gone,
    }

    impl Refused {
        fn from(error: &io::Error) -> Self {
            match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => Self::Privilege,
                Some(libc::ENODEV | libc::ENXIO) => Self::Gone,
                _ => Self::Driver,
            }
        }
    }

    /// Questions answered by one 32-bit number.
    #[derive(Debug, Clone, Copy)]
    #[repr(u32)]
    pub(crate) enum Command {
        RxChecksum = 0x14,
        TxChecksum = 0x16,
        ScatterGather = 0x18,
        TcpSegmentation = 0x1e,
        GenericSegmentation = 0x23,
        Flags = 0x25,
        GenericReceive = 0x2b,
    }

    impl Device {
        /// The answer, or `None` if device or driver have none.
        pub(crate) fn value(&self, command: Command) -> Option<u32> {
            self.ask(Value { command: command as u32, data: 0 }).map(|answer| answer.data)
        }

        /// Name of the driver.
        pub(crate) fn driver(&self) -> Option<String> {
            text(&self.driver_info()?.driver)
        }

        /// Where it sits ("0000:00:04.0"); software devices say nothing, or what they are.
        pub(crate) fn bus(&self) -> Option<String> {
            text(&self.driver_info()?.bus)
        }

        fn driver_info(&self) -> Option<DriverInfo> {
            let [version, firmware] = [[0; 32]; 2];
            let bus = [0; 32];
            self.ask(DriverInfo {
                command: GET_DRIVER_INFO,
                driver: [0; 32],
                version,
                firmware,
                bus,
                rest: [0; 64],
            })
        }

        /// Packets that the rings hold.
        pub(crate) fn rings(&self) -> Result<Rings, Refused> {
            self.try_ask(Rings { command: GET_RINGS, ..Rings::default() })
        }

        /// When interrupts are raised.
        pub(crate) fn wait(&self) -> Result<Wait, Refused> {
            self.try_ask(Wait { command: GET_COALESCING, ..Wait::default() })
        }

        /// Queues.
        pub(crate) fn channels(&self) -> Result<Channels, Refused> {
            self.try_ask(Channels { command: GET_CHANNELS, ..Channels::default() })
        }

        /// Who can stamp.
        pub(crate) fn stamps(&self) -> Result<Stamps, Refused> {
            self.try_ask(Stamps { command: GET_STAMPS, ..Stamps::default() })
        }

        /// Link rate in Mbit/s that the driver claims; `None` where it says "unknown" (-1), or 0.
        pub(crate) fn megabits(&self) -> Option<u32> {
            let answer = self.ask(Link { command: GET_LINK, ..Link::default() })?;
            let speed = u32::from(answer.speed) | u32::from(answer.speed_high) << 16;
            // Drivers that know only the lower half say 0xffff for "unknown".
            Some(speed).filter(|speed| !matches!(*speed, 0 | 0xffff | u32::MAX))
        }

        fn ask<T: Question>(&self, question: T) -> Option<T> {
            self.try_ask(question).ok()
        }

        fn try_ask<T: Question>(&self, mut question: T) -> Result<T, Refused> {
            let mut request = self.request();
            request.ifr_ifru.ifru_data = (&raw mut question).cast();
            // SAFETY: `Question` promises that the kernel reads and writes within `T` for this
            // command; `question` and `request` outlive the call, which keeps no pointer.
            let answer =
                unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
            if answer == 0 { Ok(question) } else { Err(Refused::from(&io::Error::last_os_error())) }
        }
    }

    fn text(field: &[u8]) -> Option<String> {
        let name = field.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }

    /// A structure that `SIOCETHTOOL` takes for the command in its first word.
    ///
    /// # Safety
    /// It must be `repr(C)`, have the kernel's layout and full size for that command, and accept
    /// any bytes.
    unsafe trait Question {}

    /// `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    // SAFETY: two 32-bit integers, as in the kernel's header, for every `Command`.
    unsafe impl Question for Value {}

    /// `struct ethtool_drvinfo`; the rest are sizes of other answers.
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        driver: [u8; 32],
        version: [u8; 32],
        firmware: [u8; 32],
        bus: [u8; 32],
        rest: [u8; 64],
    }
    // SAFETY: bytes and integers only, 196 bytes as in the kernel's header.
    unsafe impl Question for DriverInfo {}

    /// `struct ethtool_cmd`.
    #[repr(C)]
    #[derive(Default)]
    struct Link {
        command: u32,
        supported: u32,
        advertising: u32,
        speed: u16,
        duplex: u8,
        port: u8,
        phy_and_autonegotiation: [u8; 4],
        max_tx_packets: u32,
        max_rx_packets: u32,
        speed_high: u16,
        crossing: [u8; 2],
        partner_advertising: u32,
        reserved: [u32; 2],
    }
    // SAFETY: integers only, 44 bytes as in the kernel's header.
    unsafe impl Question for Link {}

    /// `struct ethtool_ringparam`: packets.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(crate) struct Rings {
        command: u32,
        pub(crate) receive_max: u32,
        small_and_jumbo_max: [u32; 2],
        pub(crate) send_max: u32,
        pub(crate) receive: u32,
        small_and_jumbo: [u32; 2],
        pub(crate) send: u32,
    }
    // SAFETY: integers only, 36 bytes as in the kernel's header.
    unsafe impl Question for Rings {}

    /// `struct ethtool_coalesce`: times in us; what depends on the packet rate follows and is of
    /// old drivers only.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(crate) struct Wait {
        command: u32,
        pub(crate) receive_us: u32,
        pub(crate) receive_packets: u32,
        receive_in_interrupt: [u32; 2],
        pub(crate) send_us: u32,
        pub(crate) send_packets: u32,
        send_in_interrupt: [u32; 2],
        statistics_us: u32,
        pub(crate) adaptive_receive: u32,
        adaptive_send: u32,
        by_packet_rate: [u32; 11],
    }
    // SAFETY: integers only, 92 bytes as in the kernel's header.
    unsafe impl Question for Wait {}

    /// `struct ethtool_channels`.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(crate) struct Channels {
        command: u32,
        most: [u32; 4],
        pub(crate) receive: u32,
        pub(crate) send: u32,
        other: u32,
        pub(crate) combined: u32,
    }
    // SAFETY: integers only, 36 bytes as in the kernel's header.
    unsafe impl Question for Channels {}

    /// `struct ethtool_ts_info`: `able` has the bits of `SOF_TIMESTAMPING_*`.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(crate) struct Stamps {
        command: u32,
        pub(crate) able: u32,
        /// Of the card's clock; -1: none.
        pub(crate) clock: i32,
        send_kinds: [u32; 4],
        receive_filters: [u32; 4],
    }
    // SAFETY: integers only, 44 bytes as in the kernel's header.
    unsafe impl Question for Stamps {}

    const _: () =
        assert!(size_of::<Value>() == 8 && size_of::<DriverInfo>() == 196 && size_of::<Link>() == 44);
    const _: () = assert!(
        size_of::<Rings>() == 36
            && size_of::<Wait>() == 92
            && size_of::<Channels>() == 36
            && size_of::<Stamps>() == 44
    );

    /// `ETHTOOL_GCOALESCE`.
    const GET_COALESCING: u32 = 0x0e;
    /// `ETHTOOL_GRINGPARAM`.
    const GET_RINGS: u32 = 0x10;
    /// `ETHTOOL_GCHANNELS`.
    const GET_CHANNELS: u32 = 0x3c;
    /// `ETHTOOL_GET_TS_INFO`.
    const GET_STAMPS: u32 = 0x41;

    /// `ETHTOOL_GSET`: superseded by `GLINKSETTINGS`, answered by every kernel, and enough for the
    /// rate.
    const GET_LINK: u32 = 0x01;
    /// `ETHTOOL_GDRVINFO`.
    const GET_DRIVER_INFO: u32 = 0x03;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_names_are_refused_and_unknown_ones_have_no_answers() {
        for name in ["", "a name that is too long", "e\0h0", "sixteen_letters_"] {
            assert!(Device::open(name).is_none(), "{name:?}");
        }
        let unknown = Device::open("nosuchdevice").expect("a socket");
        assert_eq!(unknown.mtu(), None);
        #[cfg(target_os = "linux")]
        {
            assert_eq!(
                (unknown.driver(), unknown.megabits(), unknown.value(Command::Flags)),
                (None, None, None)
            );
            assert_eq!(unknown.rings().err(), Some(Refused::Gone));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn loopback_tells_its_mtu_and_its_offloads() {
        let loopback = Device::open("lo").expect("a socket");
        assert!(loopback.mtu().is_some_and(|mtu| mtu >= 1280));
        assert!(loopback.value(Command::GenericReceive).is_some());
        assert_eq!(loopback.megabits(), None);
        // The kernel itself stamps on loopback, and nobody coalesces there.
        assert!(loopback.stamps().is_ok_and(|stamps| stamps.able & 0b1000 != 0 && stamps.clock == -1));
        assert_eq!(loopback.wait().err(), Some(Refused::Driver));
    }
}

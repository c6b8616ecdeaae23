//! Who keeps the wall clock right, and by how much it may be wrong.

use netaware_record::{ClockSteering, Fact, HardwareClock};

/// What the kernel was told by the program that steers its clock. Needs no privilege: nothing is
/// changed.
#[cfg(target_os = "linux")]
pub fn clock_steering() -> Fact<ClockSteering> {
    use netaware_units::Span;
    // SAFETY: `timex` consists of integers, for which zeroes are valid; a mode of zero changes
    // nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is writable for the call, which keeps no pointer.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    if answer < 0 {
        return Fact::not_known(format!("the kernel does not tell: {}", std::io::Error::last_os_error()));
    }
    Fact::Known(ClockSteering {
        // TIME_ERROR is the kernel's own verdict; the flag is the program's.
        synchronised: answer != TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        estimated_error: Span::from_micros(state.esterror),
        maximum_error: Span::from_micros(state.maxerror),
        frequency_ppb: scaled_ppm(state.freq),
    })
}

/// Who steers is only asked on Linux.
#[cfg(not(target_os = "linux"))]
pub fn clock_steering() -> Fact<ClockSteering> {
    Fact::not_known("only Linux is asked")
}

/// adjtimex(2): parts per million with 16 bits behind the point.
#[cfg(target_os = "linux")]
fn scaled_ppm(frequency: libc::c_long) -> i64 {
    frequency.saturating_mul(1000) / 65_536
}

#[cfg(target_os = "linux")]
const TIME_ERROR: libc::c_int = 5;

/// The clocks `/dev/ptpN` of network cards, with what each is ahead of the wall clock where we may
/// look.
#[cfg(target_os = "linux")]
pub fn hardware_clocks() -> Fact<Vec<HardwareClock>> {
    let Ok(folder) = std::fs::read_dir("/sys/class/ptp") else {
        return Fact::not_known("this kernel has no clocks of network cards (PTP)");
    };
    let mut names: Vec<String> =
        folder.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    if names.is_empty() {
        return Fact::not_known("no card has a clock (PTP)");
    }
    Fact::Known(names.iter().map(|name| hardware_clock(name)).collect())
}

/// Clocks of cards are only looked for on Linux.
#[cfg(not(target_os = "linux"))]
pub fn hardware_clocks() -> Fact<Vec<HardwareClock>> {
    Fact::not_known("only Linux is asked")
}

#[cfg(target_os = "linux")]
fn hardware_clock(name: &str) -> HardwareClock {
    let device = format!("/dev/{name}");
    let driver = std::fs::read_to_string(format!("/sys/class/ptp/{name}/clock_name")).unwrap_or_default();
    let (ahead, error) = match std::fs::File::open(&device) {
        Ok(file) => ahead_of_wall(&file),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let why = || format!("{device} may only be read with privilege");
            (Fact::needs_privilege(why()), Fact::needs_privilege(why()))
        }
        Err(error) => {
            let why = || format!("cannot open {device}: {error}");
            (Fact::not_known(why()), Fact::not_known(why()))
        }
    };
    HardwareClock { device, name: driver.trim().to_owned(), ahead, error }
}

/// Reads the card between two looks at the wall clock, several times, and believes the closest pair
/// of looks.
#[cfg(target_os = "linux")]
fn ahead_of_wall(device: &std::fs::File) -> (Fact<netaware_units::Span>, Fact<netaware_units::Span>) {
    use std::os::fd::AsRawFd;

    use netaware_units::Span;
    // Documentation/driver-api/ptp.rst: FD_TO_CLOCKID.
    let card: libc::clockid_t = (!device.as_raw_fd() << 3) | 3;
    let look = || {
        let before = nanos_of(libc::CLOCK_REALTIME)?;
        let there = nanos_of(card)?;
        let after = nanos_of(libc::CLOCK_REALTIME)?;
        Some((after - before, there - (before + (after - before) / 2)))
    };
    let Some((width, ahead)) = (0..LOOKS).filter_map(|_| look()).min() else {
        let why = "the card's clock cannot be read";
        return (Fact::not_known(why), Fact::not_known(why));
    };
    (Fact::Known(Span(ahead)), Fact::Known(Span(width / 2)))
}

#[cfg(target_os = "linux")]
fn nanos_of(clock: libc::clockid_t) -> Option<i64> {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is valid for writing; an unknown clock is refused.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut at) };
    (answer == 0).then(|| at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec))
}

#[cfg(target_os = "linux")]
const LOOKS: usize = 9;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_its_steering_to_anybody() {
        let Fact::Known(steering) = clock_steering() else { panic!("adjtimex refused a reading") };
        // The kernel bends by 500 ppm at most.
        assert!(steering.frequency_ppb.abs() <= 500_000, "{steering:?}");
    }

    #[test]
    fn a_frequency_of_one_ppm_is_1000_ppb() {
        assert_eq!((scaled_ppm(65_536), scaled_ppm(-32_768), scaled_ppm(0)), (1000, -500, 0));
    }

    #[test]
    fn what_is_no_clock_is_not_read_as_one() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let (ahead, error) = ahead_of_wall(&file);
        assert!(ahead.known().is_none() && error.known().is_none());
        assert!(hardware_clock("ptp-none").ahead.why().unwrap().not_known.contains("/dev/ptp-none"));
    }
}

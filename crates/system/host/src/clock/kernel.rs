//! What the kernel was told of its clock (`adjtimex`); nothing is changed.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "adjtimex has no wrapper in the standard library")
)]

use netaware_record::passive::ClockState;

/// `None` where the kernel does not tell.
#[cfg(target_os = "linux")]
pub(super) fn state() -> Option<ClockState> {
    use netaware_units::Span;
    // SAFETY: `timex` consists of integers, for which zeroes are valid; a mode of zero changes
    // nothing.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `told` is writable for the call, which keeps no pointer.
    let answer = unsafe { libc::adjtimex(&raw mut told) };
    if answer < 0 {
        return None;
    }
    let synchronised = answer != TIME_ERROR && told.status & libc::STA_UNSYNC == 0;
    Some(ClockState {
        source: "kernel".to_owned(),
        synchronised,
        // Grows by 500 ppm from when a daemon set it last, to 16 s.
        bound: synchronised.then(|| Span::from_micros(told.maxerror)),
        frequency_ppm: Some(told.freq as f64 / 65_536.0),
        ..ClockState::default()
    })
}

/// Only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn state() -> Option<ClockState> {
    None
}

#[cfg(target_os = "linux")]
const TIME_ERROR: libc::c_int = 5;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_kernel_tells_and_gives_a_bound_only_when_it_is_synchronised() {
        let state = super::state().expect("reading needs no privilege");
        assert_eq!(state.bound.is_some(), state.synchronised, "{state:?}");
    }
}

//! The integration tests of `netaware-netmodel`, in one executable.

mod by_hand;
mod closed_form;
mod laws;
mod reading;
mod refusals;
mod scenarios;

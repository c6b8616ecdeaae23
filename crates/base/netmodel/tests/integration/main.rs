//! The integration tests of `netaware-netmodel`, in one executable.

mod closed_form;
mod laws;
mod refusals;
mod scenarios;

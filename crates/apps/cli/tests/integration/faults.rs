//! What happens when something goes wrong: strangers on the port, keys, versions, deaths on either side, garbage, a full
//! disk. Everything runs on loopback, without root unless it says so, and ends by itself.

mod clock_step;
mod dead_responder;
mod endings;
mod future;
mod garbage;
mod keys;
mod middle;
mod rebinding;
mod slow;
mod store;
mod strangers;
mod unwanted;
mod vanished;

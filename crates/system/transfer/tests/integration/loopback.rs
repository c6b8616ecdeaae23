//! Files between a sender and a receiver of this process, over both loopback addresses.

mod content;
mod ends;
mod hostile;
mod keys;
mod resuming;
mod switches;

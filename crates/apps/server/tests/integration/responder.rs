//! A responder on loopback, spoken to by hand: raw sockets and the messages of the protocol, no
//! prober of ours.

mod browser;
mod channels;
mod crowd;
mod datagrams;
mod header;
mod openings;
mod queue;
mod speaker;
mod transfers;

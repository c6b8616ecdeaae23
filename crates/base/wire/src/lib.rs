//! Bytes to meaning and back.
//!
//! Everything here comes from or goes to a network that is assumed hostile: nothing panics, nothing
//! allocates more than a stated bound, and each refusal says why, because reasons are counted.
//!
//! Reading order: [`preface`] opens a TCP connection, [`frame`] cuts control messages, [`control`]
//! gives them meaning, [`datagram`] is what travels in UDP, [`ethernet`] what it occupies there and
//! [`echo`] its request-responses, [`header`] is what may be asked of IP headers, [`packet`] is a
//! captured packet and what its headers say, [`pcap`] are files of them, [`icmp`] what routers say
//! of packets, [`pattern`] is payload that can be checked, [`proof`] keeps strangers out,
//! [`stranger`] recognises who else answered. [`relay`] is what two relays say to each other before
//! they carry a connection. [`lmap`] is what probes and collectors say, [`ipfix`] what they and
//! others report, [`stamp`] what one-way delay is measured with, [`websocket`] counts what browsers
//! send, [`webrtc`] tells their datagrams from ours. [`dual`] is another protocol: that of
//! dual-stack streams; [`transfer`] is what file transfers say over one of those.

pub mod control;
pub mod datagram;
pub mod dual;
pub mod echo;
pub mod ethernet;
pub mod frame;
pub mod header;
pub mod icmp;
pub mod ipfix;
pub mod lmap;
pub mod packet;
pub mod pattern;
pub mod pcap;
pub mod preface;
pub mod proof;
pub mod relay;
pub mod stamp;
pub mod stranger;
mod token;
pub mod transfer;
pub mod webrtc;
pub mod websocket;

pub use token::{OwnerToken, Token};

/// The control protocol version spoken here.
pub const PROTOCOL_VERSION: u16 = 1;

/// The port for everything, TCP and UDP.
pub const DEFAULT_PORT: u16 = 14233;

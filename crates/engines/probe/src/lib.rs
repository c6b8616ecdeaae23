//! Request-response, path MTU and bulk methods, without a socket, a clock or a thread.
//!
//! Two kinds of things live here. *Engines* ([`EchoTrain`], [`PathMtuSearch`]) decide when to send
//! and judge what comes back; a driver gives them time and datagrams through
//! [`netaware_engine::Engine`]. *Judgements* are pure functions from what both ends counted to
//! figures of the result schema. Each module header says what is measured, what is assumed, which
//! way the figure leans when it is wrong, and where the method was published.
//!
//! | question | module |
//! |---|---|
//! | how long is a round trip, what gets lost? | [`echo`], then [`delay_report`] |
//! | how long is each way, what gets lost on it? | [`stamp`] |
//! | what does a byte more cost? | [`size_fit`] |
//! | how big a packet fits, how many routers? | [`path_mtu`], [`hops`] |
//! | from when on does a transfer count, and how fast was it? | [`warm_up`], [`goodput`] |
//! | up to when, if it broke off or left a queue? | [`plan_end`] |
//! | were the streams treated alike? | [`fairness`] |
//! | how long did giving, acknowledging and reading take? | [`tcp_times`] |
//! | what does RFC 6349 say of it? | [`rfc6349`] |
//! | where were datagrams lost? | [`loss_split`] |
//! | how fast is a short transfer, by block size? | [`matrix`] |
//! | who set the figure, the network or a host? | [`limit`] |
//! | did the path's round trip rise meanwhile? | [`shift`] |
//! | IPv4 or IPv6? | [`compare`] |

pub mod absence;
pub mod compare;
pub mod delay_report;
pub mod echo;
pub mod fairness;
pub mod goodput;
pub mod held_back;
pub mod hops;
pub mod limit;
pub mod loss_split;
pub mod matrix;
pub mod outage;
pub mod path_mtu;
pub mod plan_end;
pub mod rfc6349;
pub mod shift;
pub mod size_fit;
pub mod stamp;
pub mod stream_end;
pub mod summary;
pub mod tcp_times;
pub mod unrest;
pub mod warm_up;

mod published;
mod standstill;

pub use echo::{EchoCounts, EchoEvent, EchoPlan, EchoTrain, Exchange, Pacing};
pub use path_mtu::{PathMtu, PathMtuPlan, PathMtuSearch};

#[cfg(test)]
mod virtual_path;

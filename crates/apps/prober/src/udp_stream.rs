#![allow(missing_docs, unused)]
use std::net::UdpSocket;
use netaware_io::stop::StopFlag;
use netaware_record::*;
use netaware_wire::control::UdpPlan;
pub(crate) fn send(_: UdpSocket, _: u32, _: &UdpPlan, _: Option<usize>, _: &StopFlag) -> UdpSenderEnd { UdpSenderEnd::default() }
pub(crate) fn receive(_: UdpSocket, _: u32, _: &UdpPlan, _: Option<usize>, _: &StopFlag, _: &mut dyn FnMut(ReceiverTick)) -> UdpReceiverEnd { UdpReceiverEnd::default() }

//! Sets up, runs and takes down the tests of a session.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use netaware_io::stop::StopFlag;
use netaware_io::tcp::{Carriage, Stream};
use netaware_io::zone::ZonedIp;
use netaware_io::{clock, options};
use netaware_pool::{Place, Places, Standing};
use netaware_units::Mono;
use netaware_wire::control::{ChannelEnd, ErrorCode, TestPlan};
use netaware_wire::preface::Attach;

use super::Control;
use crate::channel::{self, Belonging};
use crate::event::{Event, Welcome};
use crate::flows::{Flow, Purpose};
use crate::meter::Meter;
use crate::plan::Refusal;
use crate::pools::told;
use crate::reflector::Reflector;
use crate::rig::{self, EchoConnections, Rig};
use crate::roster::Occupation;
use crate::runner::{self, Reporter, UdpPath};
use crate::stream_socket;
use crate::web::Consent;
use crate::{tcp_echo, trains};

impl Control<'_> {
    pub(super) fn prepare(&mut self, test: u32, plan: TestPlan) -> Result<(), Refusal> {
        let rig = match &plan {
            TestPlan::Tcp(plan) => Rig::Tcp { plan: plan.clone(), streams: BTreeMap::new(), carriage: None },
            TestPlan::Udp(plan) => {
                self.context.flows.expect(self.session.token(), test, Purpose::Stream, self.session.header());
                Rig::Udp { plan: plan.clone(), flow: None }
            }
            TestPlan::Trains(plan) => {
                self.context.flows.expect(self.session.token(), test, Purpose::Stream, self.session.header());
                Rig::Trains { plan: plan.clone(), flow: None }
            }
            TestPlan::UdpEcho { length, response, dscp, .. } => {
                let place = self.echo_place(test)?;
                let response = response.map(|response| response as usize);
                let purpose = Purpose::Echo { longest: *length as usize, response, dscp: *dscp };
                let (token, header) = (self.session.token(), self.session.header());
                self.context.flows.expect_metered(token, test, purpose, header, self.meter(test));
                Rig::UdpEcho { flow: None, drops_before: self.drops(), _place: place }
            }
            TestPlan::TcpEcho { length, response, .. } => {
                let connections = EchoConnections::metered(self.meter(test));
                let (request, response) = (*length, *response);
                Rig::TcpEcho { request, response, connections, _place: self.echo_place(test)? }
            }
        };
        self.rigs.insert(test, rig);
        let occupation = (Occupation::of(&plan), clock::now());
        self.note(|guest| {
            guest.tests.insert(test, occupation);
        });
        self.plans.insert(test, plan);
        Ok(())
    }

    /// What holds an echo test to the owner's caps, where there are any.
    fn meter(&self, test: u32) -> Option<Arc<Meter>> {
        self.context.echo_caps.meter(self.peer.ip(), test, self.events.clone())
    }

    fn echo_place(&self, test: u32) -> Result<Place, Refusal> {
        self.place(&self.context.pools.echoes, test, "latency tests")
    }

    /// A place for a part of a test; the test ends if it is taken away.
    fn place(&self, pool: &Places, test: u32, what: &str) -> Result<Place, Refusal> {
        let events = self.events.clone();
        let tell = move || {
            // A session that is gone needs no news.
            let _ = events.send(Event::Evicted { test });
        };
        pool.enter(self.peer.ip(), Standing::Unproven, tell)
            .map_err(|full| Refusal { code: ErrorCode::Busy, message: told(full, what) })
    }

    /// A connection that presents this session's token: the answer says whether it is wanted.
    pub(super) fn attach_stream(&mut self, now: Mono, welcome: &Welcome, attach: Attach, mut stream: Stream) {
        let Attach { test, stream: number, .. } = attach;
        let wanted = self.session.wants_stream(test, number)
            && self.rigs.get(&test).is_some_and(|rig| rig.takes(welcome, &stream));
        if !wanted {
            // So little into an empty buffer does not block.
            let _ = stream.write(welcome.refused());
            return;
        }
        match self.take_stream(test, number, welcome, stream) {
            Ok(()) => self.session.attached(now, test, number),
            // A further echo connection is not worth the test; a throughput test without one of its
            // streams is none.
            Err(_) if welcome.is_echo() => {}
            Err(why) => {
                self.forget(test);
                self.session.prepared(now, test, Err(why));
            }
        }
    }

    /// A browser's connection of an echo test; `None` where none is wanted.
    pub(super) fn attach_echo(&mut self, now: Mono, attach: Attach) -> Option<Consent> {
        let Attach { test, stream, .. } = attach;
        if !self.session.wants_stream(test, stream) {
            return None;
        }
        let Some(Rig::TcpEcho { request, response: None, connections, .. }) = self.rigs.get(&test) else {
            return None;
        };
        let consent = Consent {
            answered: Arc::clone(&connections.answered),
            test: connections.watch(),
            longest: *request as usize,
            place: Some(self.echo_place(test).ok()?),
            meter: connections.meter.clone(),
        };
        self.session.attached(now, test, stream);
        Some(consent)
    }

    fn take_stream(
        &mut self,
        test: u32,
        number: u16,
        welcome: &Welcome,
        mut stream: Stream,
    ) -> Result<(), Refusal> {
        let failed = |error: &dyn std::fmt::Display| internal("cannot take a stream", error);
        let header = self.session.header();
        let place = if matches!(self.rigs.get(&test), Some(Rig::TcpEcho { .. })) {
            self.echo_place(test)?
        } else {
            self.place(&self.context.pools.streams, test, "streams")?
        };
        stream.socket.set_nonblocking(false).map_err(|error| failed(&error))?;
        match self.rigs.get_mut(&test) {
            Some(Rig::Tcp { plan, streams, carriage }) => {
                options::prepare_tcp(&stream.socket, &rig::tcp_options(plan, header))
                    .map_err(|error| failed(&error))?;
                stream.write_all(welcome.attached()).map_err(|error| failed(&error))?;
                *carriage = Some(welcome.carriage());
                streams.insert(number, (stream, place));
            }
            Some(Rig::TcpEcho { request, response, connections, .. }) => {
                options::prepare_tcp(&stream.socket, &rig::tcp_echo_options(header))
                    .map_err(|error| failed(&error))?;
                stream.write_all(welcome.attached()).map_err(|error| failed(&error))?;
                connections.keep(&stream.socket).map_err(|error| failed(&error))?;
                let answered = Arc::clone(&connections.answered);
                tcp_echo::answer(stream.socket, *request, *response, answered, connections.gate(), place)
                    .map_err(|error| failed(&error))?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn attach_flow(&mut self, now: Mono, test: u32, entered: Arc<Flow>) {
        let rig = self.rigs.get_mut(&test);
        if let Some(Rig::Udp { flow, .. } | Rig::UdpEcho { flow, .. } | Rig::Trains { flow, .. }) = rig {
            *flow = Some(entered);
            self.session.attached(now, test, 0);
        }
    }

    /// From here on the test's flow can come in a data channel, and in no other way.
    pub(super) fn open_channel(&mut self, test: u32, theirs: &ChannelEnd) -> Result<ChannelEnd, Refusal> {
        let Some(plan) = self.plans.get(&test) else {
            return Err(internal("cannot open", &"there is no test"));
        };
        let place = self.place(&self.context.pools.channels, test, "data channels")?;
        let failed = |error: &dyn std::fmt::Display| internal("cannot open a data channel", error);
        let reflector = self.reflector().ok_or_else(|| failed(&"there is no UDP socket"))?;
        let certificate =
            self.context.certificate().ok_or_else(|| failed(&"the system gives no random bytes"))?;
        let belonging = Belonging {
            test,
            plan: plan.clone(),
            header: self.session.header(),
            local: self.local,
            peer: self.peer,
            interfaces: self.interfaces(ZonedIp::of(self.local)),
            meter: self.meter(test),
            _place: place,
            events: self.events.clone(),
        };
        let opened = channel::open(belonging, Arc::clone(reflector), certificate, theirs);
        let (channel, ours) = opened.map_err(|error| failed(&error))?;
        self.context.flows.forget(self.session.token(), test);
        let plan = plan.clone();
        let before = self.rigs.remove(&test).map(Box::new);
        self.rigs.insert(test, Rig::Channel { plan, channel, _before: before });
        Ok(ours)
    }

    pub(super) fn attach_channel(&mut self, now: Mono, test: u32) {
        if matches!(self.rigs.get(&test), Some(Rig::Channel { .. })) {
            self.session.attached(now, test, 0);
        }
    }

    pub(super) fn run(&mut self, test: u32) {
        let mut stop = StopFlag::new();
        let mut asking = None;
        let mut places = Vec::new();
        let outcome = match self.rigs.remove(&test) {
            Some(Rig::Tcp { plan, streams, carriage }) => {
                let reporter = Reporter::new(self.events.clone(), test);
                let affinity = self.context.config.affinity.clone();
                let (streams, held): (Vec<_>, Vec<_>) = streams.into_values().unzip();
                places = held;
                let carriage = carriage.unwrap_or(Carriage::Plain);
                runner::run_tcp(reporter, streams, carriage, plan, affinity, stop.clone())
                    .map_err(|error| internal("cannot start a thread", &error))
            }
            Some(Rig::Channel { channel, .. }) => {
                stop = channel.run(Reporter::new(self.events.clone(), test));
                Ok(())
            }
            Some(Rig::Trains { plan, flow: Some(flow) }) => {
                let options = rig::trains_options(&plan, self.session.header());
                self.udp_path(&flow, &options).and_then(|path| {
                    let reporter = Reporter::new(self.events.clone(), test);
                    let running = trains::run(reporter, path, &plan, stop.clone());
                    asking = Some(running.map_err(|error| internal("cannot start a thread", &error))?);
                    Ok(())
                })
            }
            Some(Rig::Udp { plan, flow: Some(flow) }) => {
                let options = rig::udp_options(&plan, self.session.header());
                self.udp_path(&flow, &options).and_then(|path| {
                    let reporter = Reporter::new(self.events.clone(), test);
                    let core = self.context.config.affinity.first().copied();
                    let permits = self.context.config.real_time.clone();
                    runner::run_udp(reporter, path, plan, core, permits, stop.clone())
                        .map_err(|error| internal("cannot start a thread", &error))
                })
            }
            _ => Err(internal("cannot start", &"the test is not set up")),
        };
        match outcome {
            Ok(()) => {
                self.rigs.insert(test, Rig::Running { stop, asking, _places: places });
                self.session.started(test);
            }
            Err(why) => {
                self.forget(test);
                self.session.cannot_run(test, &why);
            }
        }
    }

    /// A volley that has been checked, for a running test.
    pub(super) fn ask(&self, test: u32, volley: netaware_wire::control::VolleySpec) {
        if let Some(Rig::Running { asking: Some(asking), .. }) = self.rigs.get(&test) {
            asking.ask(volley);
        }
    }

    fn interfaces(&self, local: ZonedIp) -> Vec<String> {
        self.context.host(local).nics.into_iter().map(|nic| nic.name).collect()
    }

    fn udp_path(&self, flow: &Flow, options: &options::SocketOptions) -> Result<UdpPath, Refusal> {
        let reflector =
            self.reflector().ok_or_else(|| internal("cannot start", &"there is no UDP socket"))?;
        let socket = stream_socket::open(reflector, flow.peer, flow.local, options)
            .map_err(|error| internal("cannot open the stream's socket", &error))?;
        let interfaces = self.interfaces(flow.spoken_to().unwrap_or(ZonedIp::of(self.local)));
        Ok(UdpPath { socket, flow: flow.number, peer: flow.peer.ip(), interfaces })
    }

    pub(super) fn halt(&mut self, test: u32) {
        let drops = self.drops();
        match self.rigs.get(&test) {
            Some(Rig::Running { stop, .. }) => stop.raise(),
            Some(rig) => {
                if let Some(report) = rig.report(drops) {
                    self.forget(test);
                    self.session.ended(test, report);
                }
            }
            None => {}
        }
    }

    /// The shared UDP socket that this session's flows come to: the one bound to the address that
    /// it spoke to, else the one bound to all addresses of its IP version.
    fn reflector(&self) -> Option<&Arc<Reflector>> {
        let reflectors = || self.context.reflectors.iter();
        let own = ZonedIp::of(self.local);
        let exact = reflectors().find(|reflector| ZonedIp::of(reflector.local()) == own);
        exact.or_else(|| reflectors().find(|reflector| reflector.local().is_ipv4() == self.local.is_ipv4()))
    }

    fn drops(&self) -> u64 {
        self.reflector().map_or(0, |reflector| reflector.drops())
    }
}

fn internal(what: &str, error: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: ErrorCode::Internal, message: format!("{what}: {error}") }
}

//! Flows over the kernel's own TCP: servers and clients in network namespaces of their own, TUN
//! devices and the relay between them.
//!
//! Both namespaces belong to threads and sockets of this process and end with them. Root is needed,
//! or `unshare -rn`, which gives root in a new network namespace.
//!
//! A client sends the flow's number and the size wanted with each request; the servers of each
//! group listen on a port of their own.
//!
//! # Limits
//!
//! - The kernel has three starts: Reno's (`iw10` with `--base reno`), CUBIC's, which leaves slow
//!   start by HyStart, and BBR's. CUBIC's is `iw10-linux` with `--base cubic` or `cubic-linux`,
//!   which are one here. The feature `tcp` adds those of `headstart tcp`, before the kernel's
//!   CUBIC. One of them runs at a time, with the BPF object's own record, without gates and caps,
//!   as over QUIC. Concurrent starts to a peer share its record. JumpStart gets the size of a flow
//!   only if all have the same, for the kernel has no such information.
//! - Losses and retransmissions are counted in the kernel alone: such numbers are left out.
//! - `--receive-window` is set as a socket buffer of twice that size, one for all.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use headstart_emu::address::Block;
use headstart_emu::clock::Clock;
use headstart_emu::device::{self, Device};
use headstart_emu::namespace;
use headstart_emu::relay::{self, Relay, Stop, Urgency, prepare_thread};
use headstart_emu::tunnel::TunnelEnds;
use headstart_sim::Group;
use headstart_sim::workload::FlowSpec;
use headstart_startup::base::Kind;
use headstart_startup::catalogue::{Entry, Native};
use headstart_units::Bytes;
use headstart_virtual_quic::TransferRequest;
use socket2::SockRef;

use super::driver::{ConnectionCounters, FlowEvent, Transport, WorkloadRun, run_workload};
use super::{DuplexPath, EmulatedRun, missed_deadlines};
use headstart_study::options::{BASES, name_of};
use headstart_study::setup::{GROUPS, SchemeMix, Setup};

/// The first group's port.
const PORT: u16 = 8000;
/// Backlog of a listening socket, in connections.
const BACKLOG: i32 = 1024;
const MTU: u16 = 1500;
const CHUNK: usize = 64 * 1024;

/// Implementation of a start over the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The kernel's congestion control of this name.
    Native(&'static str),
    /// The BPF object of `headstart tcp`.
    #[cfg(feature = "tcp")]
    Object(headstart_ebpf::scheme::Scheme),
}

impl Start {
    /// The congestion control set on a listener.
    const fn control(self) -> &'static str {
        match self {
            Self::Native(name) => name,
            #[cfg(feature = "tcp")]
            Self::Object(_) => headstart_ebpf::load::CONTROL,
        }
    }
}

/// Implementation of a start that hands over to `base`.
///
/// # Errors
/// The kernel has no such start.
pub fn start(entry: &Entry, base: Kind) -> Result<Start> {
    let name = entry.name;
    let base_name = name_of(BASES, &base);
    Ok(Start::Native(match (entry.native, base) {
        (Some(Native::SlowStart), Kind::Reno | Kind::RenoLinux) => "reno",
        (Some(Native::LinuxHyStart), Kind::Cubic | Kind::CubicLinux) => "cubic",
        (Some(Native::Bbr), _) => "bbr",
        (Some(Native::SlowStart), Kind::Cubic | Kind::CubicLinux) => bail!(
            "--schemes: found {name} with --base {base_name}, expected iw10-linux, for the kernel's CUBIC leaves slow start by HyStart, \
             or {name} with --base reno"
        ),
        (Some(Native::LinuxHyStart), Kind::Reno | Kind::RenoLinux) => {
            bail!("--schemes: found {name} with --base {base_name}, expected it with --base cubic, or iw10")
        }
        (Some(_), _) => {
            bail!("--base: found {base_name}, expected cubic or reno, which the kernel's TCP has")
        }
        (None, base) => return object(entry, base),
    }))
}

#[cfg(feature = "tcp")]
fn object(entry: &Entry, base: Kind) -> Result<Start> {
    let name = entry.name;
    let scheme = name.as_str().parse().map_err(|error| {
        anyhow::anyhow!("--schemes: found {name} over the kernel's TCP: {error}; or --transport quic")
    })?;
    ensure!(
        matches!(base, Kind::Cubic | Kind::CubicLinux),
        "--schemes: found {name} with --base {}, expected it with --base cubic, for it hands over to the kernel's CUBIC, or --transport quic",
        name_of(BASES, &base)
    );
    Ok(Start::Object(scheme))
}

#[cfg(not(feature = "tcp"))]
fn object(entry: &Entry, _: Kind) -> Result<Start> {
    let name = entry.name;
    bail!(
        "--schemes: found {name}, expected what the kernel's TCP has (iw10-linux with --base cubic, iw10 with --base reno, bbr; others in \
         a program that was built with `--features full,tcp`), or --transport quic"
    )
}

/// The BPF object with a history of its own, loaded while the servers run.
#[cfg(feature = "tcp")]
mod object {
    use anyhow::{Context, Result, bail, ensure};
    use headstart_ebpf::layout::{MAX_RATE, MAX_WINDOW, Settings};
    use headstart_ebpf::load::{Attached, Options, Running, State};
    use headstart_ebpf::needs::{Level, Machine};
    use headstart_ebpf::scheme::Scheme;
    use headstart_study::options::SizeName;
    use headstart_study::setup::Setup;

    use super::Start;

    /// Payload of a packet of 1500 bytes with timestamps.
    const SEGMENT: u64 = 1448;

    pub type Object = Option<Running>;

    /// Loads the BPF object if one of the starts needs it.
    pub fn load(setup: &Setup, starts: &[Start]) -> Result<Object> {
        let mut schemes = starts.iter().filter_map(|start| match start {
            Start::Object(scheme) => Some(*scheme),
            Start::Native(_) => None,
        });
        let Some(scheme) = schemes.next() else { return Ok(None) };
        if let Some(other) = schemes.find(|other| *other != scheme) {
            bail!(
                "found {scheme} and {other} at once over the kernel's TCP, expected one of them, or --transport quic"
            );
        }
        let missing = Machine::detect().missing(Level::Control);
        ensure!(missing.is_empty(), "{scheme} over the kernel's TCP cannot run here: {}", missing.join("; "));
        ensure!(
            Attached::state() == State::Absent,
            "found `headstart tcp` attached, expected it detached: the congestion control has one name on a machine"
        );
        let mut settings = Settings {
            max_rate: MAX_RATE.as_bytes_per_sec(),
            max_window: MAX_WINDOW.get(),
            hint_rate: MAX_RATE.as_bytes_per_sec(),
            lifetime: i64::MAX as u64,
            same_path: false,
            // As the base of the schemes elsewhere, whatever the machine's default is.
            native: "cubic".to_owned(),
            ..scheme.settings()
        };
        settings.params.lifetime = settings.lifetime;
        if let (Scheme::JumpStart, SizeName::Fixed(size)) = (scheme, &setup.workload.size) {
            // Whole segments leave: the last, which is not full, must not wait for an ack.
            settings.params.cap = size.get() + SEGMENT - 1;
        }
        let peers = u32::try_from(setup.workload.history.clamp(1, 1 << 20)).unwrap_or(1 << 20);
        let options =
            Options { settings, level: Level::Control, peers, cgroup: None, namespace_default: false };
        Ok(Some(Running::start(options).context("the starts over the kernel's TCP")?))
    }
}

#[cfg(not(feature = "tcp"))]
mod object {
    use anyhow::Result;
    use headstart_study::setup::Setup;

    pub struct Object;

    pub fn load(_: &Setup, _: &[super::Start]) -> Result<Object> {
        Ok(Object)
    }
}

/// Checks that this process has the privileges and kernel support needed here.
///
/// # Errors
/// If one is missing, with instructions.
pub fn check_available() -> Result<()> {
    ensure!(
        namespace::is_privileged(),
        "--in emulator: found no right to make network namespaces, which the kernel's TCP needs: expected root, or a shell of `unshare -rn`, \
         which is root of its own network; --transport quic needs nothing"
    );
    Ok(())
}

/// Congestion controls of the groups' servers.
pub struct Testbed {
    controllers: Vec<&'static str>,
    receive_window: Bytes,
    /// Unloaded on drop.
    _object: object::Object,
}

impl super::hosts::Testbed for Testbed {
    fn new(setup: &Setup, mix: SchemeMix, groups: &[Group]) -> Result<Self> {
        check_available()?;
        let base = setup.transport.base;
        let tested = start(mix.tested, base)?;
        let beside = mix.beside.map(|entry| start(entry, base)).transpose()?.unwrap_or(tested);
        // Groups without flows have servers too, which remain idle.
        let long = start(setup.workload.long_scheme.0, base)
            .ok()
            .filter(|_| setup.has_long_flows())
            .unwrap_or(tested);
        let starts = [tested, beside, long];
        let object = object::load(setup, &starts)?;
        let windows = groups.iter().map(|group| group.tcp.receive_window);
        let counted = if setup.has_long_flows() { GROUPS } else { 2 };
        let receive_window = windows.take(counted).max().unwrap_or_default();
        Ok(Self { controllers: starts.map(Start::control).to_vec(), receive_window, _object: object })
    }

    fn run(&self, DuplexPath { up, down }: DuplexPath, run: WorkloadRun) -> Result<EmulatedRun> {
        let clock = run.clock;
        let block = Block::candidates(None).next().context("found no free address for the path")?;
        let (outside, inside) = (block.outside(), block.inside());
        let (event_sender, events): (Sender<FlowEvent>, Receiver<FlowEvent>) = channel();
        let servers = Servers::start(outside, inside, &self.controllers, event_sender.clone(), clock)
            .context("the server's namespace")?;
        let mut clients = Clients::start(inside, outside, self.receive_window, event_sender, clock)
            .context("the clients' namespace")?;
        let stop = Stop::new()?;
        let device = clients.device.take().context("the clients' device")?;
        let ends = TunnelEnds::new(device.descriptor, servers.device.descriptor.try_clone()?, stop.clone());
        let relay = Relay::new(ends, up, down, clock, relay::Settings::default()).start(stop)?;
        let mut result = run_workload(run, &mut clients, &events)?;
        drop((clients, servers));
        result.path = relay.stop().context("the path")?;
        result.invalid = missed_deadlines(&result.path);
        Ok(result)
    }
}

/// Runs `work` on a thread in a network namespace of its own with a device, and returns its result.
fn in_a_namespace<T: Send + 'static>(
    settings: device::Settings,
    work: impl FnOnce(Device) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let made = thread::spawn(move || {
        prepare_thread(Urgency::End);
        namespace::unshare_network()?;
        device::set_loopback_up()?;
        work(Device::new("headstart", &settings)?)
    });
    made.join().map_err(|_| io::Error::other("the namespace's thread has failed"))?
}

fn settings(ours: Ipv4Addr, peer: Ipv4Addr) -> device::Settings {
    device::Settings { ours, peer, leads_to: None, mtu: MTU }
}

// --- the servers --------------------------------------------------------------------------------

struct Servers {
    device: Device,
    listeners: Vec<TcpListener>,
}

impl Drop for Servers {
    /// Interrupts the threads blocked in `accept`.
    fn drop(&mut self) {
        for listener in &self.listeners {
            let _ = SockRef::from(listener).shutdown(Shutdown::Both);
        }
    }
}

impl Servers {
    fn start(
        ours: Ipv4Addr,
        peer: Ipv4Addr,
        controllers: &[&'static str],
        event_sender: Sender<FlowEvent>,
        clock: Clock,
    ) -> io::Result<Self> {
        let controllers = controllers.to_vec();
        in_a_namespace(settings(ours, peer), move |device| {
            // Path metrics of a connection must not reach the next. The setting is per namespace.
            std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")?;
            let mut listeners = vec![];
            for (port, controller) in (PORT..).zip(controllers) {
                let listener = TcpListener::bind((ours, port))?;
                let socket = SockRef::from(&listener);
                socket.listen(BACKLOG)?;
                socket.set_tcp_congestion(controller.as_bytes()).map_err(|error| {
                    io::Error::new(
                        error.kind(),
                        format!("the kernel has no congestion control `{controller}`: {error}"),
                    )
                })?;
                listeners.push(listener.try_clone()?);
                let event_sender = event_sender.clone();
                thread::spawn(move || accept(&listener, &event_sender, clock));
            }
            Ok(Self { device, listeners })
        })
    }
}

fn accept(listener: &TcpListener, event_sender: &Sender<FlowEvent>, clock: Clock) {
    prepare_thread(Urgency::End);
    while let Ok((stream, _)) = listener.accept() {
        let (event_sender, established_at) = (event_sender.clone(), clock.now());
        thread::spawn(move || {
            prepare_thread(Urgency::End);
            let counters =
                ConnectionCounters { established_at: Some(established_at), ..ConnectionCounters::default() };
            if let Some(flow) = answer(stream) {
                let _ = event_sender.send(FlowEvent::Served { flow, counters });
            }
        });
    }
}

/// Answers every request until the client closes the connection; returns the flow's number.
fn answer(mut stream: TcpStream) -> Option<u32> {
    let zeros = [0; CHUNK];
    let (mut written, mut flow) = ([0; TransferRequest::TAGGED], None);
    while stream.read_exact(&mut written).is_ok()
        && let Ok(TransferRequest { bytes, tag: Some(tag) }) = TransferRequest::parse(&written)
    {
        flow = Some(tag.flow);
        let mut left = bytes.get();
        while left > 0 {
            let length = left.min(CHUNK as u64);
            if stream.write_all(&zeros[..length as usize]).is_err() {
                return flow;
            }
            left -= length;
        }
    }
    flow
}

// --- the clients --------------------------------------------------------------------------------

/// A flow to be opened: its number, the server, and the sizes requested.
type OpenRequest = (u32, SocketAddr, Receiver<Bytes>);

struct Clients {
    device: Option<Device>,
    server: Ipv4Addr,
    /// To the thread in the clients' namespace.
    dial: Sender<OpenRequest>,
    flows: BTreeMap<u32, Sender<Bytes>>,
}

impl Clients {
    fn start(
        ours: Ipv4Addr,
        peer: Ipv4Addr,
        window: Bytes,
        event_sender: Sender<FlowEvent>,
        clock: Clock,
    ) -> io::Result<Self> {
        let (dial, dialled) = channel::<OpenRequest>();
        let device = in_a_namespace(settings(ours, peer), move |device| {
            // The setting is per namespace. Half of a buffer is for the kernel's overhead.
            let buffer = window.get().saturating_mul(2);
            std::fs::write("/proc/sys/net/ipv4/tcp_rmem", format!("4096 {buffer} {buffer}"))?;
            // Threads started here inherit the namespace.
            thread::spawn(move || {
                while let Ok((flow, server, sizes)) = dialled.recv() {
                    let event_sender = event_sender.clone();
                    thread::spawn(move || {
                        prepare_thread(Urgency::End);
                        if let Err(error) = run_connection(flow, server, sizes, &event_sender, clock) {
                            let _ = event_sender.send(FlowEvent::Failed { flow, reason: error.to_string() });
                        }
                    });
                }
            });
            Ok(device)
        })?;
        Ok(Self { device: Some(device), server: peer, dial, flows: BTreeMap::new() })
    }
}

impl Transport for Clients {
    fn open(&mut self, flow: u32, spec: &FlowSpec) {
        let (orders, sizes) = channel();
        // Fails only if the namespace's thread has ended; the driver then reports that.
        let _ = orders.send(spec.bytes);
        let server = SocketAddr::from((self.server, PORT + spec.group.min(GROUPS as u16 - 1)));
        let _ = self.dial.send((flow, server, sizes));
        self.flows.insert(flow, orders);
    }

    fn request(&mut self, flow: u32, bytes: Bytes) {
        if let Some(orders) = self.flows.get(&flow) {
            let _ = orders.send(bytes);
        }
    }

    fn close(&mut self, flow: u32) {
        self.flows.remove(&flow);
    }
}

/// One connection: sends each request at once, and reads the responses.
fn run_connection(
    flow: u32,
    server: SocketAddr,
    sizes: Receiver<Bytes>,
    event_sender: &Sender<FlowEvent>,
    clock: Clock,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let (expect, expected) = channel::<Bytes>();
    let writing = Arc::new(stream.try_clone()?);
    let writer = Arc::clone(&writing);
    thread::spawn(move || {
        prepare_thread(Urgency::End);
        while let Ok(bytes) = sizes.recv() {
            if (&*writer).write_all(&TransferRequest::tagged(bytes, flow, false).emit()).is_err()
                || expect.send(bytes).is_err()
            {
                break;
            }
        }
        let _ = writer.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; CHUNK];
    while let Ok(bytes) = expected.recv() {
        let mut left = bytes.get();
        while left > 0 {
            let most = left.min(CHUNK as u64) as usize;
            let length = stream.read(&mut buffer[..most])?;
            if length == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("the server closed {left} bytes before the end"),
                ));
            }
            left -= length as u64;
            let _ = event_sender.send(FlowEvent::Read { flow, at: clock.now(), bytes: length as u32 });
        }
        let _ = event_sender.send(FlowEvent::Message { flow, at: clock.now() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_the_kernel_lacks_is_refused_by_name() {
        let entry = |name| headstart_study::schemes::find(name).expect("it is in the catalogue");
        for (name, base, control) in [
            ("iw10", Kind::Reno, "reno"),
            ("iw10", Kind::RenoLinux, "reno"),
            ("iw10-linux", Kind::Cubic, "cubic"),
            ("iw10-linux", Kind::CubicLinux, "cubic"),
            ("bbr", Kind::Cubic, "bbr"),
        ] {
            assert_eq!(start(entry(name), base).expect("it has"), Start::Native(control));
        }
        for (name, base, part) in [
            ("halfback", Kind::Cubic, "--schemes: found halfback"),
            ("jump-start", Kind::Reno, "--schemes: found jump-start"),
            ("iw10", Kind::Cubic, "--schemes: found iw10 with --base cubic, expected iw10-linux"),
            (
                "iw10-linux",
                Kind::Reno,
                "--schemes: found iw10-linux with --base reno, expected it with --base cubic",
            ),
            ("iw10", Kind::CubicPair, "--base: found cubic-pair, expected cubic or reno"),
            ("iw32", Kind::Reno, "--transport quic"),
        ] {
            let error = start(entry(name), base).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[cfg(feature = "tcp")]
    #[test]
    fn the_starts_of_the_object_hand_over_to_the_kernels_cubic() {
        use headstart_ebpf::scheme::Scheme;
        let entry = |name| headstart_study::schemes::find(name).expect("it is in the catalogue");
        for (name, scheme) in [("wise-start", Scheme::WiseStart), ("iw32", Scheme::SlowStart(32))] {
            assert_eq!(start(entry(name), Kind::CubicLinux).expect("it has"), Start::Object(scheme));
            let error = start(entry(name), Kind::Reno).expect_err("refused").to_string();
            assert!(error.contains("expected it with --base cubic"), "{error}");
        }
    }
}

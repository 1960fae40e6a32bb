//! A program in network namespaces of its own, at one end of a path.
//!
//! The process that is to run it, called the end, is this executable again. It enters the
//! namespaces, creates the device, and passes the device's descriptor to the relay. When the relay
//! is ready, it executes the program. Its standard input is at first the socket to the relay; the
//! real one is passed over it.
//!
//! Without root the end enters a user namespace too, in which it is root and nothing else. When the
//! relay's process dies, the kernel kills the program; the device disappears with its descriptor
//! and the namespaces with their last process.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::address::Block;
use crate::device::{self, Device};

/// Environment variable of the program with the outside's address.
pub const OUTSIDE: &str = "HEADSTART_OUTSIDE";
/// Environment variable with its IPv6 address.
pub const OUTSIDE_IPV6: &str = "HEADSTART_OUTSIDE_IPV6";
/// Environment variable with the block of addresses for a nested path.
pub const BLOCK: &str = "HEADSTART_BLOCK";

/// Messages over the socket: ready or failed from the end, begin from the relay.
const READY: u8 = b'r';
const FAILED: u8 = b'f';
const BEGIN: u8 = b'b';
/// Most bytes of an error message.
const MAX_MESSAGE: usize = 4000;

/// True if this process may create devices and namespaces without a user namespace.
#[must_use]
pub fn is_privileged() -> bool {
    /// CAP_NET_ADMIN and CAP_SYS_ADMIN, by their bits.
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    bits & NEEDED == NEEDED
}

/// An end whose program has not started.
#[derive(Debug)]
pub struct End {
    child: Child,
    socket: OwnedFd,
    /// The device inside.
    pub device: OwnedFd,
}

impl End {
    /// Starts an end: `entry` is this executable with its arguments before the settings; the
    /// environment is added to this process' own.
    ///
    /// # Errors
    /// If a namespace or device cannot be created; the message has the reason.
    pub fn start(
        entry: &[&OsStr],
        settings: &device::Settings,
        environment: &[(&str, String)],
        command: &[OsString],
    ) -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let (program, words) =
            entry.split_first().ok_or_else(|| io::Error::other("no program to start an end with"))?;
        let mut end = Command::new(program);
        end.args(words)
            .arg(std::process::id().to_string())
            .arg(settings.ours.to_string())
            .arg(settings.peer.to_string())
            .arg(settings.mtu.to_string())
            .arg("--")
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(theirs));
        let child = end.spawn()?;
        // From here on the child is killed on any error.
        let mut end = KillOnDrop(Some(child));
        send(&ours, BEGIN, &[], Some(io::stdin().as_fd()))?;
        let (kind, text, device) = receive(&ours)?;
        match (kind, device) {
            (Some(READY), Some(device)) => {
                let child = end.0.take().ok_or_else(|| io::Error::other("the end has exited"))?;
                Ok(Self { child, socket: ours, device })
            }
            (Some(FAILED), _) => Err(io::Error::other(String::from_utf8_lossy(&text).into_owned())),
            _ => Err(io::Error::other("the process that prepares the namespace ended without a word")),
        }
    }

    /// Starts the program.
    ///
    /// # Errors
    /// If the end has exited.
    pub fn begin(self) -> io::Result<Program> {
        let namespace = network_namespace(&self.child.id().to_string());
        let program = Program { child: self.child, namespace };
        send(&self.socket, BEGIN, &[], None)?;
        Ok(program)
    }
}

/// A program at an end of a path. It and all processes of its network namespace are killed on drop.
#[derive(Debug)]
pub struct Program {
    /// First process of the program.
    pub child: Child,
    /// Network namespace of the program, as identified by the kernel.
    namespace: Option<OsString>,
}

fn network_namespace(process: &str) -> Option<OsString> {
    std::fs::read_link(format!("/proc/{process}/ns/net")).ok().map(Into::into)
}

/// The processes in a network namespace.
fn processes_in(namespace: &OsStr) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return vec![] };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let inside = numbers.filter(|number| network_namespace(number).is_some_and(|found| found == namespace));
    inside.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Processes left by the program have lost their network. The next pass finds new ones.
        let ours = network_namespace("self");
        for _ in 0..20 {
            let Some(namespace) =
                self.namespace.as_deref().filter(|namespace| Some(*namespace) != ours.as_deref())
            else {
                return;
            };
            let left = processes_in(namespace);
            if left.is_empty() {
                return;
            }
            for process in left {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::yield_now();
        }
    }
}

/// A child that is killed on drop unless taken out.
struct KillOnDrop(Option<Child>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn send(socket: impl AsFd, kind: u8, text: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let text = &text[..text.len().min(MAX_MESSAGE)];
    sendmsg(socket, &[IoSlice::new(&[kind]), IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

type Received = (Option<u8>, Vec<u8>, Option<OwnedFd>);

fn receive(socket: impl AsFd) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = vec![0; MAX_MESSAGE + 1];
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    text.truncate(received.bytes);
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            descriptor = descriptors.next();
        }
    }
    let kind = text.first().copied();
    Ok((kind, text.split_off(text.len().min(1)), descriptor))
}

/// Command line arguments of an end.
#[derive(Clone, Debug)]
pub struct EndArguments {
    /// Process id of the relay.
    pub parent: u32,
    /// The device.
    pub device: device::Settings,
    /// The program.
    pub command: Vec<OsString>,
}

/// Runs an end: returns only if the program could not be run, with error message and exit code.
#[must_use]
pub fn run(arguments: &EndArguments) -> (String, u8) {
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    let prepared = prepare(arguments, socket);
    let input = match prepared {
        Ok((input, device)) => {
            if let Err(error) = send(socket, READY, &[], Some(device.descriptor.as_fd())) {
                return (format!("cannot hand over the device: {error}"), 125);
            }
            input
        }
        Err(error) => {
            // The relay reports the error.
            let _ = send(socket, FAILED, error.to_string().as_bytes(), None);
            return (String::new(), 125);
        }
    };
    match receive(socket) {
        Ok((Some(BEGIN), _, _)) => {}
        _ => return (String::new(), 125),
    }
    if let Err(error) = rustix::stdio::dup2_stdin(&input) {
        return (format!("cannot set the standard input: {error}"), 125);
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return ("no command".to_owned(), 125);
    };
    let error = Command::new(program).args(rest).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot run {}: {error}", program.display()), code)
}

/// The real standard input, and the device in this process' own namespace.
fn prepare(arguments: &EndArguments, socket: BorrowedFd<'_>) -> io::Result<(OwnedFd, Device)> {
    let (_, _, input) = receive(socket)?;
    let input = input.ok_or_else(|| io::Error::other("the relay sent no standard input"))?;
    enter()?;
    // Only now: a change of credentials clears this setting.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent.and_then(|parent| u32::try_from(parent).ok()) != Some(arguments.parent) {
        return Err(io::Error::other("the relay has exited"));
    }
    device::set_loopback_up()?;
    // Lets a nested path reach the outside through it. The setting is of this namespace only.
    for file in ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"] {
        let _ = std::fs::write(file, "1");
    }
    Ok((input, Device::new("headstart", &arguments.device)?))
}

/// Enters a network namespace, and where necessary a user namespace first.
fn enter() -> io::Result<()> {
    if is_privileged() {
        return Ok(unshare(CloneFlags::CLONE_NEWNET)?);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|error| {
        let error = io::Error::from(error);
        let reason = forbidden().unwrap_or_default();
        io::Error::new(error.kind(), format!("no user namespace without root: {error}{reason}"))
    })?;
    // A process without privileges may map one group only, and must disable setgroups first.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Moves this thread, and threads it starts, to a new network namespace. The namespace ends with
/// the last of these threads, of its sockets and of its devices.
///
/// # Errors
/// If this process lacks the privilege.
pub fn unshare_network() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNET)?)
}

/// The setting of this host that forbids user namespaces, if a known one does.
fn forbidden() -> Option<String> {
    let reads =
        |file: &str, value: &str| std::fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    for (file, value) in [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/user/max_user_namespaces", "0"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ] {
        if reads(file, value) {
            return Some(format!("; {file} is {value}, and the administrator of this host can change it"));
        }
    }
    None
}

/// The block of the path that this process runs in, if any.
#[must_use]
pub fn enclosing_block() -> Option<Block> {
    std::env::var(BLOCK).ok()?.parse().ok()
}

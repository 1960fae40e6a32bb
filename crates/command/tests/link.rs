//! `headstart link` with real programs in real namespaces.
//!
//! Tests that need root or user namespaces report their absence: they are listed as not run, never
//! as passed. This program is also server and client behind the paths: no other is needed.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use headstart_emu::address::Block;
use headstart_emu::clock::Clock;
use headstart_emu::device::{self, Device};
use headstart_emu::namespace;
use headstart_emu::relay::{self, Relay, Stop};
use headstart_emu::tunnel::TunnelEnds;

/// Bytes of a page.
const PAGE: usize = 100_000;
/// Test timeout, generous for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The question whose answer is large enough to fill a buffer.
const DOWNLOAD: &[u8; 1] = b"L";
/// Beginning of the message of a test that the machine was too slow for.
const LATE: &str = "the machine did not keep real time";
/// The user id of nobody, on nearly all systems.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", port] => serve(bind(port.parse().expect("a port"))),
        ["fetch", host, port] => fetch(host, port.parse().expect("a port"), b"?"),
        ["download", host, port] => fetch(host, port.parse().expect("a port"), DOWNLOAD),
        ["linger", file] => linger(Path::new(file)),
        ["echo", address] => echo(address.parse().expect("an address")),
        _ => return run_all(),
    }
    ExitCode::SUCCESS
}

type Outcome = Result<(), String>;
type Test = fn(&Place) -> Outcome;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Root,
    UserNamespaces,
    /// Root and tcpdump.
    Capture,
}

fn run_all() -> ExitCode {
    let tests: [(&str, Needs, Test); 14] = [
        ("a page served by this machine is fetched across the path", Needs::Root, outside_page),
        ("a page beyond this machine is fetched, and a datagram comes back", Needs::Root, beyond),
        ("without root both ends are in namespaces", Needs::UserNamespaces, both_ends),
        ("ipv6 crosses it too", Needs::UserNamespaces, ipv6),
        ("a path inside a path reaches this machine through both", Needs::Root, nested),
        ("and without root it reaches the server of the outer one", Needs::UserNamespaces, nested_as_nobody),
        ("the exit code is the program's", Needs::UserNamespaces, exit_code),
        ("a program that will not end is ended", Needs::UserNamespaces, ignores_signals),
        ("an interrupt of the link alone is the program's too", Needs::UserNamespaces, interrupted),
        ("nothing is left behind, even of a relay that was killed", Needs::Root, nothing_left),
        ("a trace drives it as it says", Needs::UserNamespaces, trace),
        ("a path goes dark and comes back", Needs::UserNamespaces, blackout),
        ("the log accounts for every packet", Needs::UserNamespaces, account),
        ("a capture at either end gives the path's options", Needs::Capture, measured),
    ];
    let place = Place::new();
    let (mut failed, mut not_run) = (0, 0);
    for (name, needs, test) in tests {
        match lacks(needs) {
            Some(reason) => {
                not_run += 1;
                headstart_host::not_run(&format!("link: {name}: {reason}"));
            }
            None => match test(&place) {
                Ok(()) => println!("link: {name} ... ok"),
                Err(error) if error.starts_with(LATE) => {
                    not_run += 1;
                    headstart_host::not_run(&format!("link: {name}: {error}"));
                }
                Err(error) => {
                    failed += 1;
                    println!("link: {name} ... FAILED: {error}");
                }
            },
        }
    }
    println!("link: {} passed, {failed} failed, {not_run} not run", tests.len() - failed - not_run);
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The missing feature of the machine for a test.
fn lacks(needs: Needs) -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    // Programs in these tests run as nobody. By default udev lets all users open the device.
    let mode = std::fs::metadata("/dev/net/tun").map_or(0, |data| data.permissions().mode() & 0o777);
    if needs == Needs::UserNamespaces && mode & 0o006 != 0o006 {
        return Some(format!("/dev/net/tun has the mode {mode:03o}, and only 666 lets nobody open it"));
    }
    if needs == Needs::Capture && Command::new("tcpdump").arg("--version").output().is_err() {
        return Some("there is no tcpdump".to_owned());
    }
    if namespace::is_privileged() {
        return None;
    }
    match needs {
        Needs::Root | Needs::Capture => Some("it needs root".to_owned()),
        Needs::UserNamespaces => {
            let works = Command::new("unshare").args(["-rn", "true"]).status();
            (!works.is_ok_and(|status| status.success()))
                .then(|| "no user namespaces without root".to_owned())
        }
    }
}

/// A folder that all users may read, with copies of the programs: nobody cannot enter this one's.
struct Place {
    folder: PathBuf,
    headstart: PathBuf,
    this: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("headstart-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&folder, everybody).expect("it is ours");
        let (headstart, this) = (folder.join("headstart"), folder.join("this"));
        std::fs::copy(env!("CARGO_BIN_EXE_headstart"), &headstart).expect("a copy");
        std::fs::copy(std::env::current_exe().expect("this program"), &this).expect("a copy");
        Self { folder, headstart, this }
    }

    fn link(&self, options: &str) -> Command {
        let mut command = Command::new(&self.headstart);
        command.arg("link").args(options.split_whitespace()).stdin(Stdio::null()).current_dir(&self.folder);
        command
    }

    /// As the user nobody, if this is root: tests without root must work so.
    fn link_as_nobody(&self, options: &str) -> Command {
        let mut command = self.link(options);
        if namespace::is_privileged() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn serve(&self) -> String {
        format!("exec {} serve 8000", self.this.display())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

// --- the programs at the ends --------------------------------------------------------------------

fn bind(port: u16) -> TcpListener {
    // Both families where there are both.
    TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))).expect("a free port")
}

fn serve(listener: TcpListener) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("a client");
        let mut question = [0];
        if stream.read(&mut question).is_ok() {
            let size = if question == *DOWNLOAD { 50 * PAGE } else { PAGE };
            let _ = stream.write_all(&vec![7; size]);
        }
    }
}

/// Fetches a page; prints its time in milliseconds.
fn fetch(host: &str, port: u16, question: &[u8; 1]) {
    let host = match host.strip_prefix('$') {
        Some(variable) => std::env::var(variable).expect("set by the link"),
        None => host.to_owned(),
    };
    let address = SocketAddr::new(host.parse::<IpAddr>().expect("an address"), port);
    let clock = Clock::start();
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).expect("a server");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out");
    stream.write_all(question).expect("sent");
    let mut page = vec![];
    stream.read_to_end(&mut page).expect("the page");
    assert_eq!(page.len(), if question == DOWNLOAD { 50 * PAGE } else { PAGE });
    println!("{}", clock.now().as_nanos() / 1_000_000);
}

/// Two datagrams at once return as they were sent; prints the time in milliseconds.
fn echo(address: SocketAddr) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a port");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a time-out");
    let clock = Clock::start();
    for text in [b"one", b"two"] {
        socket.send_to(text, address).expect("sent");
    }
    let mut datagrams: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            let mut buffer = [0; 100];
            let (length, from) = socket.recv_from(&mut buffer).expect("an answer");
            assert_eq!(from, address, "it comes from whom it was sent to");
            buffer[..length].to_vec()
        })
        .collect();
    datagrams.sort();
    assert_eq!(datagrams, [b"one", b"two"]);
    println!("{}", clock.now().as_nanos() / 1_000_000);
}

/// Writes its process number, and stays.
fn linger(file: &Path) {
    std::fs::write(file, std::process::id().to_string()).expect("a file");
    std::io::stdin().read_to_end(&mut vec![]).expect("input");
    loop {
        std::thread::park();
    }
}

// --- helpers -------------------------------------------------------------------------------------

/// Serves pages from this process until the test program ends.
fn page_server() -> (u16, JoinHandle<()>) {
    let listener = bind(0);
    let port = listener.local_addr().expect("bound").port();
    (port, std::thread::spawn(move || serve(listener)))
}

/// Runs a command; returns the number that it printed, and its summary.
fn number(command: &mut Command) -> Result<(u64, String), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let (out, summary) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    if !output.status.success() {
        return Err(format!("{}: {out}{summary}", output.status));
    }
    let number = out.trim().parse().map_err(|_| format!("found `{out}`, expected a number\n{summary}"))?;
    Ok((number, summary))
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Checks that it took at least so long.
fn took(millis: u64, least: u64) -> Outcome {
    ensure(millis >= least, || format!("took {millis} ms, expected {least} or more"))
}

/// Runs a link: never in less than so many milliseconds, and at least once in less than the upper
/// bound. A busy machine may exceed that a few times in a row. The summary of the last run.
fn timed(least: u64, most: u64, link: impl Fn() -> Command) -> Result<String, String> {
    let mut seen = vec![];
    for _ in 0..5 {
        let (millis, summary) = number(&mut link())?;
        took(millis, least)?;
        if millis <= most {
            return Ok(summary);
        }
        seen.push(millis);
    }
    Err(format!("took {seen:?} ms, expected {least} to {most}"))
}

/// The path of the tests: 100 kB take two round trips and 32 ms at the least.
const PATH: &str = "--rate 25mbit --rtt 50ms --buffer 104p";

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> Result<T, String> {
    let clock = Clock::start();
    while clock.now().as_secs_f64() < TIMEOUT.as_secs_f64() {
        if let Some(found) = what() {
            return Ok(found);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Err("waited a minute in vain".to_owned())
}

// --- the tests -----------------------------------------------------------------------------------

fn outside_page(place: &Place) -> Outcome {
    let (port, _server) = page_server();
    let fetch = || {
        let mut link = place.link(PATH);
        link.args(["--quiet", "--"]).arg(&place.this);
        link.args(["fetch", "$HEADSTART_OUTSIDE", &port.to_string()]);
        link
    };
    timed(132, 2000, fetch).map(drop)
}

/// A neighbouring machine: a namespace at the other end of a cable, which serves pages and
/// echoes datagrams on port 8000.
struct Neighbour {
    _cable: relay::Handle,
}

/// An address of the block for benchmarks between networks: no path's, and not this machine's.
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const NEIGHBOUR_SEES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

impl Neighbour {
    fn new() -> std::io::Result<Self> {
        // Routes need a block; the last one is unused.
        let leads_to = Block::candidates(None).last();
        let settings = move |ours, peer| device::Settings { ours, peer, leads_to, mtu: 1500 };
        let theirs = std::thread::spawn(move || {
            namespace::unshare_network()?;
            device::set_loopback_up()?;
            let device = Device::new("cable", &settings(NEIGHBOUR, NEIGHBOUR_SEES))?;
            let pages = TcpListener::bind((NEIGHBOUR, 8000))?;
            std::thread::spawn(move || serve(pages));
            let socket = UdpSocket::bind((NEIGHBOUR, 8000))?;
            std::thread::spawn(move || {
                let mut buffer = [0; 100];
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    let _ = socket.send_to(&buffer[..length], from);
                }
            });
            Ok::<_, std::io::Error>(device)
        });
        let theirs = theirs.join().map_err(|_| std::io::Error::other("the neighbour's thread"))??;
        let ours = Device::new("cable%d", &settings(NEIGHBOUR_SEES, NEIGHBOUR))?;
        let stop = Stop::new()?;
        let ends = TunnelEnds::new(theirs.descriptor, ours.descriptor, stop.clone());
        let cable = || headstart_emu::Path::new([]);
        let relay = Relay::new(ends, cable(), cable(), Clock::start(), relay::Settings::default());
        Ok(Self { _cable: relay.start(stop)? })
    }
}

fn beyond(place: &Place) -> Outcome {
    let _neighbour = Neighbour::new().map_err(|error| error.to_string())?;
    let address = NEIGHBOUR.to_string();
    let run = |words: &[&str]| {
        let mut link = place.link(PATH);
        link.args(["--quiet", "--"]).arg(&place.this).args(words);
        link
    };
    timed(132, 3000, || run(&["fetch", &address, "8000"]))?;
    timed(50, 3000, || run(&["echo", &format!("{address}:8000")]))?;
    // At a closed port the connection ends without an answer.
    let mut link = place.link(PATH);
    link.args(["--quiet", "--"]).arg(&place.this).args(["fetch", &address, "8001"]);
    let output = link.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = output.map_err(|error| error.to_string())?;
    ensure(!status.success(), || "a page from a port where nobody listens".to_owned())
}

fn both_ends(place: &Place) -> Outcome {
    let summary = timed(132, 2000, || {
        let mut link = place.link_as_nobody(PATH);
        link.args(["--serve", &place.serve(), "--"]).arg(&place.this);
        link.args(["fetch", "$HEADSTART_OUTSIDE", "8000"]);
        link
    })?;
    ensure(summary.contains("alid: the machine kept") || summary.contains("INVALID"), || summary)
}

fn ipv6(place: &Place) -> Outcome {
    let fetch = || {
        let mut link = place.link_as_nobody(PATH);
        link.args(["--serve", &place.serve(), "--"]).arg(&place.this);
        link.args(["fetch", "$HEADSTART_OUTSIDE_IPV6", "8000"]);
        link
    };
    timed(132, 2000, fetch).map(drop)
}

fn nested(place: &Place) -> Outcome {
    let (port, _server) = page_server();
    // The address of this machine on the outer path: its first block, unless others are running.
    let outside = format!(
        "{0} link {PATH} --quiet -- {1} fetch $HEADSTART_OUTSIDE {port}",
        place.headstart.display(),
        place.this.display()
    );
    let fetch = || {
        let mut link = place.link(PATH);
        // The shell of the outer path puts its own outside address into the inner command.
        link.args(["--quiet", "--", "sh", "-c", &outside]);
        link
    };
    timed(232, 3000, fetch).map(drop)
}

fn nested_as_nobody(place: &Place) -> Outcome {
    let inner = format!(
        "{0} link {PATH} --quiet -- {1} fetch $HEADSTART_OUTSIDE 8000",
        place.headstart.display(),
        place.this.display()
    );
    let fetch = || {
        let mut link = place.link_as_nobody(PATH);
        link.args(["--quiet", "--serve", &place.serve(), "--", "sh", "-c", &inner]);
        link
    };
    timed(232, 3000, fetch).map(drop)
}

/// 128 and SIGKILL, after it ignored the first signal.
fn ignores_signals(place: &Place) -> Outcome {
    let mut link = place.link_as_nobody(PATH);
    link.args(["--quiet", "--duration", "200ms", "--serve", &place.serve(), "--", "sh", "-c"]);
    let clock = Clock::start();
    let status = link.arg("trap '' TERM; while :; do sleep 1; done").status();
    let status = status.map_err(|error| error.to_string())?;
    ensure(status.code() == Some(137), || format!("{status}"))?;
    took(clock.now().as_nanos() / 1_000_000, 3200)
}

/// A script's `kill -INT`, or a supervisor's: the program got no signal from a terminal.
fn interrupted(place: &Place) -> Outcome {
    let file = place.folder.join("interrupted");
    let command = format!("trap 'exit 42' INT; echo up > {}; while :; do sleep 0.1; done", file.display());
    let mut link = place.link_as_nobody(PATH);
    link.args(["--quiet", "--duration", "60s", "--serve", &place.serve(), "--", "sh", "-c", &command]);
    // In a process group of its own, in the foreground of no terminal.
    let mut link = link.process_group(0).spawn().map_err(|error| error.to_string())?;
    wait_for(|| std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty()))?;
    let status = Command::new("kill").args(["-INT", &link.id().to_string()]).status();
    ensure(status.is_ok_and(|status| status.success()), || "it cannot be told".to_owned())?;
    let status = link.wait().map_err(|error| error.to_string())?;
    ensure(status.code() == Some(42), || format!("{status}, expected what the program makes of it, 42"))
}

fn exit_code(place: &Place) -> Outcome {
    for (command, code) in [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)] {
        let status = place
            .link_as_nobody(PATH)
            .args(["--quiet", "--serve", &place.serve(), "--", "sh", "-c", command])
            .status();
        let status = status.map_err(|error| error.to_string())?;
        ensure(status.code() == Some(code), || format!("`{command}` gave {status}, expected {code}"))?;
    }
    Ok(())
}

fn devices() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().skip(2).filter_map(|line| Some(line.split(':').next()?.trim().to_owned())).collect()
}

/// In a network of its own: other tests make and remove devices.
fn nothing_left(place: &Place) -> Outcome {
    let alone = || {
        namespace::unshare_network().map_err(|error| error.to_string())?;
        nothing_left_here(place)
    };
    let done = std::thread::scope(|scope| scope.spawn(alone).join());
    done.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

fn nothing_left_here(place: &Place) -> Outcome {
    let before = devices();
    let file = place.folder.join("lingering");
    let mut relay = place
        .link(PATH)
        .args(["--quiet", "--"])
        .arg(&place.this)
        .arg("linger")
        .arg(&file)
        .spawn()
        .map_err(|error| error.to_string())?;
    let process = wait_for(|| std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty()))?;
    ensure(devices().len() == before.len() + 1, || "a path has one device here".to_owned())?;
    relay.kill().map_err(|error| error.to_string())?;
    let _ = relay.wait();
    wait_for(|| (!Path::new("/proc").join(&process).join("ns").exists() || is_dead(&process)).then_some(()))
        .map_err(|_| format!("process {process} outlives its relay"))?;
    wait_for(|| (devices() == before).then_some(())).map_err(|_| format!("left behind: {:?}", devices()))
}

/// Dead, though its parent may not have waited for it yet.
fn is_dead(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}

/// One opportunity in each millisecond is 12 Mbit/s: 70 packets of 1500 bytes are 70 ms.
fn trace(place: &Place) -> Outcome {
    let file = place.folder.join("trace");
    std::fs::write(&file, "1\n").map_err(|error| error.to_string())?;
    let fetch = || {
        let mut link = place.link_as_nobody("--rtt 20ms --buffer 1000p");
        link.arg("--trace").arg(&file).args(["--serve", &place.serve(), "--"]);
        link.arg(&place.this).args(["fetch", "$HEADSTART_OUTSIDE", "8000"]);
        link
    };
    timed(40 + 69, 2000, fetch).map(drop)
}

fn blackout(place: &Place) -> Outcome {
    let file = place.folder.join("dark");
    // The path is dark by its own clock, and on a busy machine the programs at its ends may take
    // longer than that to begin.
    for light in [900_u64, 4_000, 16_000] {
        let mut link = place.link_as_nobody(PATH);
        link.args(["--change", "60ms rate=0mbit", "--change", &format!("{light}ms rate=25mbit")]);
        link.arg("--log").arg(&file).args(["--serve", &place.serve(), "--"]).arg(&place.this);
        let (millis, _) = number(link.args(["fetch", "$HEADSTART_OUTSIDE", "8000"]))?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        // Times at which packets arrived, and at which they were due to leave.
        let millis_of = |event: &str, field: usize| -> Vec<u64> {
            let fields = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let found = fields.filter(|fields| fields.get(2) == Some(&event));
            found.filter_map(|fields| Some(fields[field].parse::<u64>().ok()? / 1_000_000)).collect()
        };
        let (arrived, left) = (millis_of("arrival", 0), millis_of("departure", 7));
        // Packets on the wire when it went dark arrive half a round trip later.
        ensure(left.iter().all(|at| *at <= 60 + 25 || *at >= light), || {
            format!("something left before there was light again at {light} ms: {left:?} ms")
        })?;
        ensure(left.iter().any(|at| *at >= light), || format!("nothing left after {light} ms"))?;
        let begun = arrived.into_iter().min().ok_or("nothing arrived")?;
        if begun + 300 < light {
            return took(millis, light - begun - 1);
        }
    }
    Err("the client never began before there was light again".to_owned())
}

/// Each packet has one arrival and one end: a departure or a drop.
fn account(place: &Place) -> Outcome {
    let file = place.folder.join("log");
    let mut link = place.link_as_nobody("--rate 25mbit --rtt 50ms --buffer 10p --loss 2%");
    link.arg("--log").arg(&file).args(["--serve", &place.serve(), "--"]);
    number(link.arg(&place.this).args(["fetch", "$HEADSTART_OUTSIDE", "8000"]))?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    for way in ["up", "down"] {
        let of = |event: &str| -> Vec<u64> {
            let mark = format!(",{way},{event},");
            let mut numbers: Vec<u64> = text
                .lines()
                .filter_map(|line| line.split_once(&mark)?.1.split(',').next()?.parse().ok())
                .collect();
            numbers.sort_unstable();
            numbers
        };
        let arrived = of("arrival");
        let mut ends = of("departure");
        ends.extend(of("drop"));
        ends.extend(of("unsent"));
        ends.sort_unstable();
        ensure(arrived.len() >= 30, || format!("{way}: only {} packets arrived", arrived.len()))?;
        ensure(ends.windows(2).all(|two| two[0] != two[1]), || format!("{way}: a packet ended twice"))?;
        ensure(ends.iter().all(|end| arrived.contains(end)), || format!("{way}: an end without arrival"))?;
        // Only packets of the last moment are in transit when the program ends.
        let first_open = arrived.iter().position(|number| !ends.contains(number)).unwrap_or(arrived.len());
        let open = arrived.len() - ends.len();
        ensure(open < 40 && first_open >= arrived.len() / 3, || {
            format!("{way}: {} arrived, {} ended, and number {first_open} did not", arrived.len(), ends.len())
        })?;
    }
    ensure(text.contains(",drop,"), || "nothing was dropped".to_owned())?;
    let figures = place.folder.join("figures");
    let drawn =
        Command::new(&place.headstart).arg("show-link").arg(&file).arg("--out").arg(&figures).output();
    let drawn = drawn.map_err(|error| error.to_string())?;
    ensure(drawn.status.success(), || String::from_utf8_lossy(&drawn.stderr).into_owned())?;
    for name in ["throughput.svg", "delay.svg", "queue.svg", "report.html"] {
        let text = std::fs::read_to_string(figures.join(name)).map_err(|error| format!("{name}: {error}"))?;
        ensure(text.contains("<svg"), || format!("{name} is no drawing"))?;
    }
    Ok(())
}

/// The kernel's TCP, captured by a program that nobody here wrote.
fn measured(place: &Place) -> Outcome {
    let (port, _server) = page_server();
    let filter = format!("tcp port {port}");
    let mut last = String::new();
    for _ in 0..3 {
        let file = |end| place.folder.join(format!("{end}.pcap"));
        let capture =
            |file: &Path| format!("tcpdump --immediate-mode -i any -s 100 -w {} {filter}", file.display());
        let (inside, outside) = (file("inside"), file("outside"));
        let script = format!(
            "{} 2>ready & until grep -q listening ready; do sleep 0.05; done
            {} download '$HEADSTART_OUTSIDE' {port}; sleep 0.3; kill -INT $!; wait",
            capture(&inside),
            place.this.display(),
        );
        let mut outer = Command::new("sh");
        outer.args(["-c", &format!("exec {}", capture(&outside))]).stderr(Stdio::piped());
        let mut outer = outer.spawn().map_err(|error| error.to_string())?;
        let mut heard = [0; 20];
        let stderr = outer.stderr.as_mut().ok_or("no messages")?;
        stderr.read_exact(&mut heard).map_err(|error| error.to_string())?;
        let sender = place.folder.join("ss.txt");
        let sample = format!("while sleep 0.1; do ss -tin 'sport = :{port}'; done >{}", sender.display());
        let sampler = Command::new("sh").args(["-c", &sample]).process_group(0).spawn();
        let sampler = sampler.map_err(|error| error.to_string())?;
        let output = place.link(PATH).args(["--", "sh", "-c", &script]).output();
        let _ = Command::new("kill").args(["--", &format!("-{}", sampler.id())]).status();
        let pid = outer.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = outer.wait();
        let output = output.map_err(|error| error.to_string())?;
        let summary = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(output.status.success(), || summary.clone())?;
        if summary.contains("INVALID") {
            last = summary.lines().last().unwrap_or_default().to_owned();
            continue;
        }
        for file in [inside, outside, sender] {
            let measured = Command::new(&place.headstart).arg("measure").arg(&file).output();
            let measured = measured.map_err(|error| error.to_string())?;
            let line = String::from_utf8_lossy(&measured.stdout).into_owned();
            let words: Vec<&str> = line.split_whitespace().collect();
            for (option, unit, expected, share) in [
                ("--rate", "Mbit/s", 25.0, 0.05),
                ("--rtt", "ms", 50.0, 0.05),
                ("--buffer", "kB", 156.0, 0.2),
            ] {
                let place = words.iter().position(|word| *word == option);
                let value =
                    place.and_then(|place| words.get(place + 1)?.strip_suffix(unit)?.parse::<f64>().ok());
                ensure(value.is_some_and(|value| (value / expected - 1.0).abs() <= share), || {
                    format!("{}: {line}{}", file.display(), String::from_utf8_lossy(&measured.stderr))
                })?;
            }
        }
        return Ok(());
    }
    Err(format!("{LATE} three times: {last}"))
}

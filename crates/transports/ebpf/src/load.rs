//! Attach, status, set, detach.
//!
//! Attached, all state is in the kernel under [`PINS`]: maps, and the links that keep the programs
//! in place. No process runs. Each step leaves the machine usable if the loader is killed after it.
//! The link at the cgroup is made last and removed first, so that no connection gets an incomplete
//! control.

mod maps;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use headstart_startup::prior::Hint;
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, Object, ObjectBuilder, PrintLevel, set_print};
use nix::mount::MsFlags;
use nix::sched::CloneFlags;

use crate::Error;
use crate::layout::Settings;
use crate::needs::{Level, Machine};

pub use maps::Maps;
use maps::not_attached;

/// The object, as `src/bpf/build.sh` made it.
pub const OBJECT: &[u8] = include_bytes!("bpf/headstart.bpf.o");
/// The object's parts that need no type information of the kernel.
pub const WINDOW_OBJECT: &[u8] = include_bytes!("bpf/window.bpf.o");
/// Directory of all pins.
pub const PINS: &str = "/sys/fs/bpf/headstart";
/// Directory of the pins of the client's hint.
pub const HINT_PINS: &str = "/sys/fs/bpf/headstart-hint";
/// The name of the congestion control.
pub const CONTROL: &str = "headstart";

/// Held by whoever changes pins. Not below these: there every user could hold it.
const LOCK: &str = "/run/headstart-tcp.lock";
const BPF_FILES: &str = "/sys/fs/bpf";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const CONTROLS_GONE_WAIT: Duration = Duration::from_secs(5);
const MAPS: [&str; 9] =
    ["settings", "counters", "history", "busy", "credits", "strangers", "prefixes", "reports", "peers"];
const CGROUP: &str = "link-cgroup";
const MIGRATE: &str = "link-migrate";
const MEASURE: &str = "link-measure";
/// The links of the congestion controls, those that the last one switches to first.
const CONTROLS: [(&str, &str); 3] =
    [("headstart_fr", "link-repair"), ("headstart_lt", "link-light"), (CONTROL, "link-control")];
const ZERO: [u8; 4] = [0; 4];

/// Parameters of an attach.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings to begin with. Without a native control it is the namespace's default.
    pub settings: Settings,
    /// The congestion control, or only sock_ops.
    pub level: Level,
    /// Peers remembered at most.
    pub peers: u32,
    /// The cgroup whose connections get the control; `None`: no connections but by the namespace's
    /// default.
    pub cgroup: Option<PathBuf>,
    /// Make the control the default of this network namespace.
    pub namespace_default: bool,
}

/// The last messages of libbpf, which it prints and does not return.
static LIBBPF_MESSAGES: Mutex<String> = Mutex::new(String::new());

fn note_message(_: PrintLevel, text: String) {
    let mut messages = LIBBPF_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if messages.len() < 4000 {
        messages.push_str(&text);
    }
}

pub(crate) fn failed(doing: &str) -> impl Fn(libbpf_rs::Error) -> Error + '_ {
    move |error| {
        let messages = core::mem::take(&mut *LIBBPF_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner));
        let detail = messages.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        if std::env::var_os("HEADSTART_TCP_LOG").is_some() {
            eprintln!("{messages}");
        }
        Error::new(format!("cannot {doing}: {error:#}{}{detail}", if detail.is_empty() { "" } else { ": " }))
    }
}

pub(crate) fn refused(doing: &str) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| Error::new(format!("cannot {doing}: {error}"))
}

/// An object that is loaded and linked, held by this process alone: parts not pinned end with it.
#[derive(Debug)]
pub struct Running {
    object: Object,
    /// By the names of their pins.
    links: Vec<(&'static str, Link)>,
    options: Options,
}

pub(crate) fn open(level: Level, peers: u32, with: &[&str]) -> Result<Object, Error> {
    set_print(Some((PrintLevel::Warn, note_message)));
    let mut builder = ObjectBuilder::default();
    let is_old = with.contains(&"hs_window") || with.contains(&"hs_hint");
    let bytes = if is_old { WINDOW_OBJECT } else { OBJECT };
    let mut object = builder.open_memory(bytes).map_err(failed("read the object"))?;
    let is_wanted = |name: &OsStr| with.iter().any(|it| name == *it);
    for mut program in object.progs_mut() {
        let is_control = program.section() == "struct_ops";
        let wanted = is_wanted(program.name())
            || (is_control && level == Level::Control && with.contains(&"hs_select"));
        program.set_autoload(wanted);
    }
    for mut map in object.maps_mut() {
        let name = map.name().to_owned();
        let is_control = CONTROLS.iter().any(|(control, _)| name == *control);
        let needed = match name.to_str() {
            Some("settings" | "counters") => true,
            Some("hinted") => with.contains(&"hs_hint"),
            Some("scratch") => with.contains(&"hs_replay"),
            Some("strangers" | "prefixes") if with.contains(&"hs_replay") => true,
            Some("history") if with.contains(&"hs_replay_peers") => true,
            // The constants of all programs.
            Some(name) if name.ends_with(".rodata") => true,
            _ => level == Level::Control && with.contains(&"hs_select"),
        };
        map.set_autocreate(needed).map_err(failed("prepare a map"))?;
        let entries = match name.to_str() {
            Some("history" | "busy") => peers,
            // It has only peers with false hints.
            Some("credits") => peers.min(1 << 16),
            _ => continue,
        };
        if needed && !is_control {
            map.set_max_entries(entries).map_err(failed("size the history"))?;
        }
    }
    object.load().map_err(failed("load the object"))
}

pub(crate) fn program<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::ProgramMut<'a>, Error> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or_else(|| Error::new(format!("the object has no program `{name}`")))
}

fn link_cgroup(object: &Object, name: &str, cgroup: &Path) -> Result<Link, Error> {
    let doing = format!("open the cgroup {}", cgroup.display());
    let folder = fs::File::open(cgroup).map_err(refused(&doing))?;
    if !cgroup.join("cgroup.controllers").exists() {
        return Err(Error::new(format!("found no cgroup v2 in {}, expected one", cgroup.display())));
    }
    program(object, name)?.attach_cgroup(folder.as_raw_fd()).map_err(failed("attach to the cgroup"))
}

impl Running {
    /// Loads and links everything; connections are covered when this returns.
    ///
    /// # Errors
    /// If the kernel refuses a part; nothing is left then.
    pub fn start(mut options: Options) -> Result<Self, Error> {
        let native = fs::read_to_string(DEFAULT).map_err(refused("read the namespace's default"))?;
        if options.settings.native.is_empty() {
            native.trim().clone_into(&mut options.settings.native);
        }
        let programs: &[&str] = match options.level {
            Level::Control => &["hs_select", "hs_adopt", "hs_migrate", "hs_measure"],
            Level::Window => &["hs_window"],
        };
        // A kernel may have no tracing programs, which `hs_measure` is.
        let mut object = match open(options.level, options.peers, programs) {
            Err(_) if options.level == Level::Control => {
                open(options.level, options.peers, &programs[..programs.len() - 1])?
            }
            opened => opened?,
        };
        Maps::of(&object)?.set(&options.settings)?;
        let mut links = Vec::new();
        if options.level == Level::Control {
            // A detach may have been killed, or another program's may be on its way.
            controls_are_gone()?;
            let migrate = program(&object, "hs_migrate")?.attach().map_err(failed("make the iterator"))?;
            links.push((MIGRATE, migrate));
            let measure = program(&object, "hs_measure")?;
            if measure.autoload()
                && let Ok(link) = measure.attach()
            {
                links.push((MEASURE, link));
            }
            for (name, pin) in CONTROLS {
                let mut map = object
                    .maps_mut()
                    .find(|map| map.name() == name)
                    .ok_or_else(|| Error::new(format!("the object has no control `{name}`")))?;
                let link = map.attach_struct_ops().map_err(failed("register the congestion control"))?;
                links.push((pin, link));
            }
        }
        let mut running = Self { object, links, options };
        if running.options.namespace_default {
            running.become_default()?;
        }
        if let Some(cgroup) = &running.options.cgroup {
            let name = if running.options.level == Level::Control { "hs_select" } else { "hs_window" };
            let link = link_cgroup(&running.object, name, cgroup)?;
            running.links.push((CGROUP, link));
        }
        Ok(running)
    }

    fn become_default(&mut self) -> Result<(), Error> {
        self.options.settings.is_default = true;
        self.maps()?.set(&self.options.settings)?;
        fs::write(DEFAULT, CONTROL).map_err(refused("make it the namespace's default"))
    }

    /// Maps of the attached object.
    ///
    /// # Errors
    /// If the object has none of that name.
    pub fn maps(&self) -> Result<Maps, Error> {
        Maps::of(&self.object)
    }

    /// Pins everything, so that it stays when this process ends. The link at the cgroup is pinned
    /// last: until then new connections lose the object with this process. Then the listeners of
    /// the cgroup get the control, which keeps it in the kernel.
    ///
    /// # Errors
    /// If a pin cannot be made; those that were are taken away again.
    pub fn pin(mut self) -> Result<Vec<Listener>, Error> {
        if let Err(error) = self.pin_all() {
            self.links.clear();
            let _ = remove_pins(Path::new(PINS));
            return Err(error);
        }
        let adopted = self.adopt();
        if adopted.is_err() {
            let _ = detach_all();
        }
        adopted
    }

    fn pin_all(&mut self) -> Result<(), Error> {
        let pins = Path::new(PINS);
        prepare(pins)?;
        for mut map in self.object.maps_mut() {
            let name = map.name().to_owned();
            if map.autocreate() && name.to_str().is_some_and(|name| MAPS.contains(&name)) {
                map.pin(pins.join(name)).map_err(failed("pin a map"))?;
            }
        }
        for (name, link) in &mut self.links {
            link.pin(pins.join(name)).map_err(failed("pin a link"))?;
        }
        Ok(())
    }

    /// Gives the listeners of the cgroup the control: those that are there, and later ones.
    fn adopt(&mut self) -> Result<Vec<Listener>, Error> {
        let (Level::Control, Some(cgroup)) = (self.options.level, &self.options.cgroup) else {
            return Ok(vec![]);
        };
        // The number of a cgroup is its folder's inode.
        self.options.settings.cgroup = fs::metadata(cgroup).map_err(refused("read the cgroup"))?.ino();
        self.maps()?.set(&self.options.settings)?;
        let link = program(&self.object, "hs_adopt")?.attach().map_err(failed("make the iterator"))?;
        let lines = in_all_namespaces(&link)?;
        Ok(listeners(&lines))
    }

    /// Undoes everything: new connections have their old control at once, live ones are moved back.
    ///
    /// # Errors
    /// If a live connection could not be moved.
    pub fn stop(mut self) -> Result<(), Error> {
        restore_default(&self.options.settings)?;
        self.links.retain(|(name, _)| *name != CGROUP);
        let result = match self.links.iter().find(|(name, _)| *name == MIGRATE) {
            Some((_, link)) => in_all_namespaces(link).map(drop),
            None => Ok(()),
        };
        self.links.clear();
        match self.options.level {
            Level::Control => result.and(controls_are_gone()),
            // Controls that are registered are another's.
            Level::Window => result,
        }
    }
}

/// Waits until the kernel lists none of the controls. It frees a link some time after its pin was
/// removed, and until then an attach would find the names taken.
#[expect(clippy::disallowed_methods, reason = "the kernel reports nothing that could be waited for")]
fn controls_are_gone() -> Result<(), Error> {
    let ours = |name: &str| CONTROLS.iter().any(|(control, _)| *control == name);
    let mut left = Vec::new();
    for _ in 0..CONTROLS_GONE_WAIT.as_millis() {
        let listed = fs::read_to_string(AVAILABLE).map_err(refused("read the available controls"))?;
        left = listed.split_whitespace().filter(|name| ours(name)).map(str::to_owned).collect();
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::new(format!(
        "found {} registered after {CONTROLS_GONE_WAIT:?}, expected none: a process holds its link, \
         such as another `headstart tcp run` (`bpftool link`)",
        left.join(", ")
    )))
}

/// Makes a folder for pins; the file system of pins is mounted if it is not.
fn prepare(pins: &Path) -> Result<(), Error> {
    if !is_mounted() {
        nix::mount::mount(Some("bpf"), BPF_FILES, Some("bpf"), MsFlags::empty(), None::<&str>)
            .map_err(|error| Error::new(format!("cannot mount {BPF_FILES}: {error}")))?;
    }
    fs::create_dir(pins).map_err(refused(&format!("make {}", pins.display())))
}

fn is_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').skip(1).take(2).eq([BPF_FILES, "bpf"]))
}

fn remove_pins(pins: &Path) -> Result<(), Error> {
    let doing = format!("remove {}", pins.display());
    // The links first: the maps and programs that they hold are of no use without them.
    let mut entries: Vec<PathBuf> =
        fs::read_dir(pins).map_err(refused(&doing))?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries
        .sort_by_key(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("link")));
    for path in entries {
        fs::remove_file(&path).map_err(refused(&doing))?;
    }
    fs::remove_dir(pins).map_err(refused(&doing))
}

/// A link that is pinned there, if one is; libbpf would print that it is not.
fn pinned_link(path: &Path) -> Option<Link> {
    path.exists().then(|| Link::open(path).ok()).flatten()
}

fn restore_default(settings: &Settings) -> Result<(), Error> {
    if !settings.is_default {
        return Ok(());
    }
    let now = fs::read_to_string(DEFAULT).map_err(refused("read the namespace's default"))?;
    if now.trim() != CONTROL {
        return Ok(());
    }
    // A control that is not on the list of allowed ones cannot be a namespace's default; Reno can.
    fs::write(DEFAULT, &settings.native)
        .or_else(|_| fs::write(DEFAULT, "reno"))
        .map_err(refused("give the namespace its default back"))
}

/// A listening socket of the cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Name of a process that has the socket open; empty if there is none.
    pub program: String,
    /// The congestion control that it had.
    pub control: String,
}

/// The listeners in the lines of `hs_adopt`: the inode of a socket, and its control.
fn listeners(lines: &str) -> Vec<Listener> {
    let mut found: BTreeMap<u64, Listener> = lines
        .lines()
        .filter_map(|line| {
            let (inode, control) = line.split_once(' ')?;
            let listener = Listener { program: String::new(), control: control.to_owned() };
            Some((inode.parse().ok()?, listener))
        })
        .collect();
    // Processes may end while they are looked at.
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        for file in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(file.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
            let listener = inode.and_then(|inode| found.get_mut(&inode.parse().ok()?));
            if let Some(listener) = listener.filter(|it| it.program.is_empty()) {
                let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
                name.trim().clone_into(&mut listener.program);
            }
        }
    }
    found.into_values().collect()
}

/// Runs an iterator over the sockets of the machine, in every network namespace; returns its lines.
fn in_all_namespaces(link: &Link) -> Result<String, Error> {
    let mut spaces = BTreeMap::new();
    for entry in fs::read_dir("/proc").map_err(refused("read /proc"))?.flatten() {
        let path = entry.path().join("ns/net");
        // Processes may have ended meanwhile.
        if let (Ok(found), Ok(file)) = (fs::metadata(&path), fs::File::open(&path)) {
            spaces.entry(found.ino()).or_insert(file);
        }
    }
    let home = fs::File::open("/proc/self/ns/net").map_err(refused("open this network namespace"))?;
    let enter = |space: &fs::File| nix::sched::setns(space, CloneFlags::CLONE_NEWNET);
    let (mut lines, mut result) = (String::new(), Ok(()));
    for space in spaces.values() {
        if let Err(error) = enter(space) {
            result = Err(Error::new(format!("cannot enter a network namespace: {error}")));
            continue;
        }
        let mut iterator = Iter::new(link).map_err(failed("move live connections"))?;
        if let Err(error) = iterator.read_to_string(&mut lines) {
            result = Err(Error::new(format!("cannot move live connections: {error}")));
        }
    }
    enter(&home).map_err(|error| Error::new(format!("cannot return to this network namespace: {error}")))?;
    result.map(|()| lines)
}

/// The object attached to this machine.
#[derive(Debug)]
pub struct Attached {
    /// Maps of the attached object.
    pub maps: Maps,
}

/// Completeness of the attached object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No part is attached.
    Absent,
    /// An attach or a detach was killed on the way.
    Partial,
    /// Every part is attached.
    Whole,
}

impl Attached {
    /// Completeness of the attached object.
    #[must_use]
    pub fn state() -> State {
        let pins = Path::new(PINS);
        if !pins.exists() {
            return State::Absent;
        }
        let settings = Maps::pinned().and_then(|maps| maps.settings());
        let is_default = settings.is_ok_and(|it| it.is_default) && pins.join(CONTROLS[2].1).exists();
        if pins.join(CGROUP).exists() || is_default { State::Whole } else { State::Partial }
    }

    /// Attaches, and returns the listeners that it covers. Remains of an attach or a detach that
    /// was killed are taken away first.
    ///
    /// # Errors
    /// If something is attached already, the machine lacks something, or the kernel refuses a part.
    pub fn attach(options: Options) -> Result<Vec<Listener>, Error> {
        let missing = Machine::detect().missing(options.level);
        if !missing.is_empty() {
            return Err(Error::new(missing.join("; ")));
        }
        let _lock = lock_pins()?;
        match Self::state() {
            State::Absent => {}
            State::Partial => detach_all()?,
            State::Whole => {
                return Err(Error::new(
                    "found one attached already, expected none: `tcp set` changes it, `tcp detach` ends it",
                ));
            }
        }
        Running::start(options)?.pin()
    }

    /// The attached object.
    ///
    /// # Errors
    /// If none is attached.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { maps: Maps::pinned()? })
    }

    /// Answers of connections that have their own control back are timed.
    #[must_use]
    pub fn times_all_answers(&self) -> bool {
        Path::new(PINS).join(MEASURE).exists()
    }

    /// Which level is attached.
    #[must_use]
    pub fn level(&self) -> Level {
        self.maps.level()
    }

    /// Takes all parts away, of an incomplete object too: new connections have their old control at
    /// once, live ones are moved back.
    ///
    /// # Errors
    /// If nothing is attached, or a part of it cannot be taken away.
    pub fn detach() -> Result<(), Error> {
        if !Path::new(PINS).exists() {
            return Err(not_attached());
        }
        let machine = Machine::detect();
        if !machine.has_capabilities {
            return Err(Error::new(machine.missing(Level::Window).join("; ")));
        }
        let _lock = lock_pins()?;
        detach_all()
    }
}

/// Attaches and detaches wait for each other: what one has done in part looks like the remains of
/// one that was killed. The kernel ends the lock with the process.
fn lock_pins() -> Result<fs::File, Error> {
    let doing = format!("lock {LOCK}");
    let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(LOCK);
    let file = file.map_err(refused(&doing))?;
    file.lock().map_err(refused(&doing))?;
    Ok(file)
}

fn detach_all() -> Result<(), Error> {
    let pins = Path::new(PINS);
    if !pins.exists() {
        return Err(not_attached());
    }
    if let Ok(settings) = Maps::pinned().and_then(|maps| maps.settings()) {
        restore_default(&settings)?;
    }
    let cgroup = pins.join(CGROUP);
    if cgroup.exists() {
        // Even while another process holds the link, it is out of the cgroup.
        if let Some(link) = pinned_link(&cgroup) {
            let _ = link.detach();
        }
        fs::remove_file(&cgroup).map_err(refused("remove the link at the cgroup"))?;
    }
    let moved = pinned_link(&pins.join(MIGRATE)).map_or(Ok(()), |link| in_all_namespaces(&link).map(drop));
    let mut has_control = false;
    for (_, pin) in CONTROLS {
        // From Linux 6.10 on a control ends here even while another process holds its link.
        if let Some(link) = pinned_link(&pins.join(pin)) {
            has_control = true;
            let _ = link.detach();
        }
    }
    remove_pins(pins)?;
    // Without one here, those that are registered are another's, such as `headstart tcp run`'s.
    if has_control { moved.and(controls_are_gone()) } else { moved }
}

/// The client's hint: from now on the connections of `cgroup` carry it.
///
/// # Errors
/// If the machine lacks something, or the kernel refuses it.
pub fn attach_hint(cgroup: &Path, hint: Hint) -> Result<(), Error> {
    let missing = Machine::detect().missing_for_hints();
    if !missing.is_empty() {
        return Err(Error::new(missing.join("; ")));
    }
    let pins = Path::new(HINT_PINS);
    let value = hint.emit().ok_or_else(|| Error::new("found a hint of less than 1 kbit/s, expected more"))?;
    let _lock = lock_pins()?;
    if pins.exists() {
        take_hint_away()?;
    }
    let object = open(Level::Window, 1, &["hs_hint"])?;
    let map = object.maps().find(|map| map.name() == "hinted");
    let map = map.ok_or_else(|| Error::new("the object has no map `hinted`"))?;
    let mut field = [0; 8];
    field[..value.len()].copy_from_slice(&value);
    map.update(&ZERO, &field, MapFlags::ANY).map_err(failed("write the hint"))?;
    let mut link = link_cgroup(&object, "hs_hint", cgroup)?;
    prepare(pins)?;
    link.pin(pins.join(CGROUP)).map_err(failed("pin a link"))
}

/// The connections of the cgroup carry no hint any more.
///
/// # Errors
/// If none is attached.
pub fn detach_hint() -> Result<(), Error> {
    let _lock = lock_pins()?;
    take_hint_away()
}

fn take_hint_away() -> Result<(), Error> {
    if !Path::new(HINT_PINS).exists() {
        return Err(Error::new("found no hint attached, expected one of `headstart tcp hint`"));
    }
    if let Some(link) = pinned_link(&Path::new(HINT_PINS).join(CGROUP)) {
        let _ = link.detach();
    }
    remove_pins(Path::new(HINT_PINS))
}

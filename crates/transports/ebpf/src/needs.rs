//! Missing features of a machine, and the level that it can run.
//!
//! | level | Linux | needs | gives |
//! |---|---|---|---|
//! | congestion control | 6.4 | struct_ops links, BTF, built-in CUBIC, cgroup v2 | every scheme |
//! | window | 5.7 | links of cgroup programs, cgroup v2 | a larger, paced first window |
//!
//! Both need CAP_BPF and CAP_NET_ADMIN; the window stays with the connection's own control.

use core::fmt;
use std::path::{Path, PathBuf};

/// Levels of support, by the programs that a kernel can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The congestion control: every scheme.
    Control,
    /// sock_ops alone: a larger, paced first window.
    Window,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Control => "control",
            Self::Window => "window",
        })
    }
}

/// Features of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Version of the kernel: major and minor.
    pub kernel: (u32, u32),
    /// The kernel has type information (`/sys/kernel/btf/vmlinux`).
    pub has_btf: bool,
    /// CUBIC's functions are in the kernel itself, and not in a module that is not loaded.
    pub has_cubic: bool,
    /// This process has CAP_BPF (or CAP_SYS_ADMIN) and CAP_NET_ADMIN.
    pub has_capabilities: bool,
    /// Mount point of cgroup v2.
    pub cgroup: Option<PathBuf>,
}

const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_BPF: u64 = 1 << 39;
/// Oldest kernel with links of struct_ops.
const CONTROL: (u32, u32) = (6, 4);
/// Oldest kernel with links of cgroup programs; TCP_BPF_IW (4.13) and the callback at the first RTT
/// (5.3) are older.
const WINDOW: (u32, u32) = (5, 7);
/// Oldest kernel whose sock_ops write TCP options.
const HINT: (u32, u32) = (5, 10);

impl Machine {
    /// The machine that runs this program.
    #[must_use]
    pub fn detect() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let status = read("/proc/self/status");
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
        let may_load = bits & (CAP_BPF | CAP_SYS_ADMIN) != 0 && bits & CAP_NET_ADMIN != 0;
        Self {
            kernel: version(&release),
            has_btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            has_cubic: read("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .split_whitespace()
                .any(|name| name == "cubic"),
            has_capabilities: may_load,
            cgroup: mount(&read("/proc/self/mountinfo")),
        }
    }

    /// Each missing feature of a level, in a few words; empty: it can run.
    #[must_use]
    pub fn missing(&self, level: Level) -> Vec<String> {
        self.missing_from(level, if level == Level::Control { CONTROL } else { WINDOW })
    }

    /// Each missing feature of the client's hint.
    #[must_use]
    pub fn missing_for_hints(&self) -> Vec<String> {
        self.missing_from(Level::Window, HINT)
    }

    fn missing_from(&self, level: Level, least: (u32, u32)) -> Vec<String> {
        let (mut missing, (major, minor)) = (Vec::new(), self.kernel);
        if self.kernel < least {
            missing.push(format!("found Linux {major}.{minor}, expected {}.{} or newer", least.0, least.1));
        }
        if !self.has_capabilities {
            missing.push("found no right to load it, expected root, or CAP_BPF and CAP_NET_ADMIN".to_owned());
        }
        if self.cgroup.is_none() {
            missing.push(
                "found no mount of cgroup v2, expected one (mount -t cgroup2 none /sys/fs/cgroup)".to_owned(),
            );
        }
        if level == Level::Control {
            if !self.has_btf {
                missing.push(
                    "found no /sys/kernel/btf/vmlinux, expected a kernel with CONFIG_DEBUG_INFO_BTF"
                        .to_owned(),
                );
            }
            if !self.has_cubic {
                missing.push(
                    "found no CUBIC in tcp_available_congestion_control, expected it (modprobe tcp_cubic)"
                        .to_owned(),
                );
            }
        }
        missing
    }

    /// The best level that can run.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        [Level::Control, Level::Window].into_iter().find(|level| self.missing(*level).is_empty())
    }
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The first mount of cgroup v2 in a mountinfo (proc(5)): the type follows a lone hyphen.
fn mount(info: &str) -> Option<PathBuf> {
    info.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let is_cgroup = kind.split(' ').next() == Some("cgroup2");
        is_cgroup.then(|| mount.split(' ').nth(4).map(PathBuf::from)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            kernel: (6, 18),
            has_btf: true,
            has_cubic: true,
            has_capabilities: true,
            cgroup: Some(PathBuf::from("/sys/fs/cgroup")),
        }
    }

    #[test]
    fn missing_capabilities_are_named_and_the_next_level_is_chosen() {
        assert_eq!(machine().level(), Some(Level::Control));
        for (lacking, level, words) in [
            (
                Machine { kernel: (5, 15), ..machine() },
                Some(Level::Window),
                "found Linux 5.15, expected 6.4 or newer",
            ),
            (Machine { has_btf: false, ..machine() }, Some(Level::Window), "CONFIG_DEBUG_INFO_BTF"),
            (Machine { has_cubic: false, ..machine() }, Some(Level::Window), "modprobe tcp_cubic"),
            (Machine { has_capabilities: false, ..machine() }, None, "CAP_BPF"),
            (Machine { cgroup: None, ..machine() }, None, "cgroup2"),
            (Machine { kernel: (5, 6), ..machine() }, None, "found Linux 5.6"),
        ] {
            assert_eq!(lacking.level(), level, "{words}");
            let missing = lacking.missing(Level::Control).join("; ");
            assert!(missing.contains(words), "{missing}");
        }
    }

    #[test]
    fn a_hint_needs_options_that_sock_ops_writes() {
        assert_eq!(machine().missing_for_hints(), Vec::<String>::new());
        let old = Machine { kernel: (5, 9), has_btf: false, ..machine() };
        assert_eq!(old.missing_for_hints(), ["found Linux 5.9, expected 5.10 or newer"]);
        assert_eq!(old.missing(Level::Window), Vec::<String>::new());
    }

    #[test]
    fn versions_and_mounts_are_read() {
        assert_eq!(version("6.18.44-fc-v595"), (6, 18));
        assert_eq!(version("nonsense"), (0, 0));
        let info = "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                    40 23 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(mount(info), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount("31 23 0:27 / /sys rw - cgroup cgroup rw"), None);
    }
}

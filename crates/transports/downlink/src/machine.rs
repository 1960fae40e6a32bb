//! The system files that are read, under a root that tests replace.

use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// A Linux system's state of its network.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    /// The running system.
    fn default() -> Self {
        Self::under("/")
    }
}

/// The default route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name of the interface.
    pub interface: String,
    /// Address of the gateway; `None` on links without one.
    pub gateway: Option<Ipv4Addr>,
}

/// Most bytes read of a system file.
const LONGEST: u64 = 1 << 20;

impl Machine {
    /// A system whose `/proc` and `/sys` are in `root`.
    #[must_use]
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A file's text.
    ///
    /// # Errors
    /// If it cannot be read, or is not UTF-8.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut text = String::new();
        File::open(self.root.join(path))?.take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    }

    /// True if the file or folder exists.
    #[must_use]
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }

    /// The IPv4 default route of the smallest metric.
    #[must_use]
    pub fn default_route(&self) -> Option<Route> {
        let table = self.read("proc/net/route").ok()?;
        let routes = table.lines().skip(1).filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [interface, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
                return None;
            };
            let flags = u32::from_str_radix(flags, 16).ok()?;
            let is_default = address(destination)?.is_unspecified() && address(mask)?.is_unspecified();
            if !is_default || flags & IS_UP == 0 || !is_interface(interface) {
                return None;
            }
            let gateway = address(gateway).filter(|_| flags & HAS_GATEWAY != 0);
            Some((metric.parse::<u32>().ok()?, Route { interface: interface.to_owned(), gateway }))
        });
        routes.min_by_key(|(metric, _)| *metric).map(|(_, route)| route)
    }

    /// The hardware address of a neighbour, if it is in the neighbour table.
    #[must_use]
    pub fn hardware_address(&self, neighbour: Ipv4Addr, interface: &str) -> Option<String> {
        let table = self.read("proc/net/arp").ok()?;
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [address, _, flags, hardware, _, device, ..] = fields[..] else { return None };
            let complete = flags != "0x0" && hardware != "00:00:00:00:00:00";
            let is_it = address.parse() == Ok(neighbour) && device == interface && complete;
            is_it.then(|| hardware.to_ascii_lowercase())
        })
    }
}

/// Linux `RTF_UP` and `RTF_GATEWAY`.
const IS_UP: u32 = 1;
const HAS_GATEWAY: u32 = 2;

/// An address as the kernel prints it there: four bytes in memory as a number in host order.
fn address(hex: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(hex, 16).ok().map(|number| Ipv4Addr::from(number.to_ne_bytes()))
}

/// True if a name is valid for an interface; it then cannot leave its folder (`dev_valid_name`).
#[must_use]
pub fn is_interface(name: &str) -> bool {
    let forbidden = |c: char| c == '/' || c == ':' || c.is_whitespace();
    !name.is_empty() && name.len() < 16 && name != "." && name != ".." && !name.contains(forbidden)
}

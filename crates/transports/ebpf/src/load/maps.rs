//! The maps of an object that runs: settings, counters, records and events.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use headstart_startup::history::Record;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, RingBufferBuilder};

use super::{PINS, ZERO, failed};
use crate::Error;
use crate::history::Clocks;
use crate::layout::{self, Counters, KernelRecord, PeerEvent, Report, Settings};
use crate::needs::Level;

/// The maps of an object that runs.
#[derive(Debug)]
pub struct Maps {
    settings: MapHandle,
    counters: MapHandle,
    /// Level "window" has none of these.
    history: Option<MapHandle>,
    strangers: Option<MapHandle>,
    prefixes: Option<MapHandle>,
    reports: Option<MapHandle>,
    peers: Option<MapHandle>,
}

impl Maps {
    pub(super) fn pinned() -> Result<Self, Error> {
        let open = |name: &str| MapHandle::from_pinned_path(Path::new(PINS).join(name));
        let needed = |name: &str| {
            open(name).map_err(|error| {
                let is_there = Path::new(PINS).join(name).exists();
                if is_there { failed("open the attached maps")(error) } else { not_attached() }
            })
        };
        Ok(Self {
            settings: needed("settings")?,
            counters: needed("counters")?,
            history: open("history").ok(),
            strangers: open("strangers").ok(),
            prefixes: open("prefixes").ok(),
            reports: open("reports").ok(),
            peers: open("peers").ok(),
        })
    }

    pub(super) fn of(object: &Object) -> Result<Self, Error> {
        let find = |name: &str| {
            let map = object.maps().find(|map| map.name() == name && map.autocreate())?;
            MapHandle::try_from(&map).ok()
        };
        let needed = |name| find(name).ok_or_else(|| Error::new(format!("the object has no map `{name}`")));
        Ok(Self {
            settings: needed("settings")?,
            counters: needed("counters")?,
            history: find("history"),
            strangers: find("strangers"),
            prefixes: find("prefixes"),
            reports: find("reports"),
            peers: find("peers"),
        })
    }

    /// The settings as they are.
    ///
    /// # Errors
    /// If the kernel does not return them, or returns maps of another version of this program.
    pub fn settings(&self) -> Result<Settings, Error> {
        let bytes = self.settings.lookup(&ZERO, MapFlags::ANY).map_err(failed("read the settings"))?;
        bytes.as_deref().and_then(Settings::from_bytes).ok_or_else(|| {
            Error::new(
                "the settings are from another version of headstart: detach with that one, or reattach",
            )
        })
    }

    /// True if the maps belong to the object that is attached now.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let id = |map: &MapHandle| map.info().ok().map(|about| about.info.id);
        Self::pinned().is_ok_and(|pinned| id(&pinned.settings) == id(&self.settings))
    }

    /// Changes the settings; connections that start from now on follow them.
    ///
    /// # Errors
    /// If the kernel does not take them.
    pub fn set(&self, settings: &Settings) -> Result<(), Error> {
        self.settings.update(&ZERO, &settings.to_bytes(), MapFlags::ANY).map_err(failed("write the settings"))
    }

    /// All counters, of all processors.
    ///
    /// # Errors
    /// If the kernel does not return them.
    pub fn counters(&self) -> Result<Counters, Error> {
        let each = self.counters.lookup_percpu(&ZERO, MapFlags::ANY).map_err(failed("read the counters"))?;
        let mut sum = Counters::default();
        for bytes in each.unwrap_or_default() {
            let one = Counters::from_bytes(&bytes).ok_or_else(|| {
                Error::new("the counters are from another version of headstart: detach with that one")
            })?;
            sum.add(&one);
        }
        Ok(sum)
    }

    /// The level of the object.
    pub(super) const fn level(&self) -> Level {
        if self.history.is_some() { Level::Control } else { Level::Window }
    }

    fn history(&self) -> Result<&MapHandle, Error> {
        self.history.as_ref().ok_or_else(|| Error::new("level window keeps no history"))
    }

    /// All records, in no order.
    ///
    /// # Errors
    /// If there is no history at this level.
    pub fn records(&self) -> Result<Vec<(IpAddr, KernelRecord)>, Error> {
        let history = self.history()?;
        let mut records = Vec::new();
        for key in history.keys() {
            // It may have been evicted meanwhile.
            let Ok(Some(value)) = history.lookup(&key, MapFlags::ANY) else { continue };
            records.extend(layout::peer(&key).zip(KernelRecord::from_bytes(&value)));
        }
        Ok(records)
    }

    /// Deletes all records, and the credits of first contacts: how many records and prefixes.
    ///
    /// # Errors
    /// If there is no history at this level.
    pub fn flush(&self) -> Result<(usize, usize), Error> {
        let history = self.history()?;
        let clear = |map: &MapHandle| {
            let keys: Vec<Vec<u8>> = map.keys().collect();
            keys.iter().filter(|key| map.delete(key).is_ok()).count()
        };
        let gone = (clear(history), self.prefixes.as_ref().map_or(0, clear));
        if let Some(strangers) = &self.strangers {
            strangers
                .update(&ZERO, &[0; 8], MapFlags::ANY)
                .map_err(failed("forget the credit of first contacts"))?;
        }
        Ok(gone)
    }

    /// Takes over a record of another store, unless the one here is newer. True if it did.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn restore(&self, peer: IpAddr, record: &Record, clocks: Clocks) -> Result<bool, Error> {
        let history = self.history()?;
        let Some(record) = clocks.to_kernel(record) else { return Ok(false) };
        let key = layout::key(peer);
        let here = history.lookup(&key, MapFlags::ANY).ok().flatten();
        if here.and_then(|it| KernelRecord::from_bytes(&it)).is_some_and(|it| it.saved_at >= record.saved_at)
        {
            return Ok(false);
        }
        history.update(&key, &record.to_bytes(), MapFlags::ANY).map_err(failed("write a record"))?;
        Ok(true)
    }

    /// A peer's record; `None` if there is none.
    ///
    /// # Errors
    /// If there is no history at this level.
    pub fn record(&self, peer: IpAddr) -> Result<Option<KernelRecord>, Error> {
        let found = self.history()?.lookup(&layout::key(peer), MapFlags::ANY);
        Ok(found.ok().flatten().and_then(|bytes| KernelRecord::from_bytes(&bytes)))
    }

    /// Deletes a peer's record, if there is one.
    ///
    /// # Errors
    /// If there is no history at this level.
    pub fn remove(&self, peer: IpAddr) -> Result<(), Error> {
        // It may be gone already.
        let _ = self.history()?.delete(&layout::key(peer));
        Ok(())
    }

    /// Calls `each` for every why record, until it returns false.
    ///
    /// # Errors
    /// If there is no ring buffer at this level, or it cannot be read.
    pub fn trace(&self, mut each: impl FnMut(&Report) -> bool) -> Result<(), Error> {
        let each = |bytes: &[u8]| Report::from_bytes(bytes).is_none_or(|report| each(&report));
        self.read(self.reports.as_ref(), |settings| &mut settings.traces, each, || true)
    }

    /// Calls `each` for every event of a peer while `goes_on`, which is asked five times a second.
    /// One process at a time reads them.
    ///
    /// # Errors
    /// If there is no ring buffer at this level, or it cannot be read.
    pub fn follow_peers(
        &self,
        mut each: impl FnMut(IpAddr, PeerEvent),
        goes_on: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let each = |bytes: &[u8]| {
            if let Some((peer, event)) = PeerEvent::from_bytes(bytes) {
                each(peer, event);
            }
            true
        };
        self.read(self.peers.as_ref(), |settings| &mut settings.is_exchanged, each, goes_on)
    }

    /// Reads a ring buffer while its flag in the settings is set, and both functions return true.
    fn read(
        &self,
        ring: Option<&MapHandle>,
        flag: fn(&mut Settings) -> &mut bool,
        mut each: impl FnMut(&[u8]) -> bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let reads = || failed("read the events of starts");
        let ring = ring.ok_or_else(|| Error::new("level window reports nothing"))?;
        let going = core::cell::Cell::new(true);
        let mut builder = RingBufferBuilder::new();
        let call = |bytes: &[u8]| {
            going.set(going.get() && each(bytes));
            0
        };
        builder.add(ring, call).map_err(reads())?;
        let ring = builder.build().map_err(reads())?;
        let set = |reader: bool| {
            let mut settings = self.settings()?;
            *flag(&mut settings) = reader;
            self.set(&settings)
        };
        set(true)?;
        let mut result = Ok(());
        while going.get() && goes_on() && result.is_ok() {
            // A signal ends the wait, not the reading.
            match ring.poll(Duration::from_millis(200)) {
                Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                    result = Err(reads()(error));
                }
                _ => {}
            }
            // Another reader ended; or nothing more will follow.
            let is_cleared = self.settings().is_ok_and(|mut settings| !*flag(&mut settings));
            if is_cleared || !self.is_attached() {
                break;
            }
        }
        set(false)?;
        result
    }
}

pub(super) fn not_attached() -> Error {
    Error::new(
        "nothing is attached: found no pins in /sys/fs/bpf/headstart, expected pins of `headstart tcp attach`",
    )
}

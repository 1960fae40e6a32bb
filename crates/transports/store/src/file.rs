//! The file behind the table: a header and slots of 64 bytes, each with its own checksum.
//!
//! ```text
//!  "hs.histo" | version 1 | slot size 64 | 0 ... | CRC-32      64 bytes
//!  slot 0                                                      64 bytes each, see [`crate::slot`]
//!  slot 1 ...
//! ```
//!
//! A slot is written in place by one call. There is no log and no tree: nothing in the file refers
//! to anything else in it, so that damage stays where it is. A process that is killed leaves every
//! slot either as it was or as it should be. A machine that loses power may leave some half
//! written, which their checksums show. Faults found on opening:
//!
//! | found | done |
//! |---|---|
//! | an empty file, or a header cut short | begun anew, with a notice |
//! | another program's file, another version, a damaged header | refused, left as it is |
//! | the last slot cut short | cut off, with a notice |
//! | a slot whose checksum is wrong | freed, with a notice |
//! | two slots of one peer (killed while the file shrank) | the newest stays |
//! | a record from the future (a wrong clock) | dated to now, so that newer ones can replace it |
//! | more slots than there may be | moved together and cut off; the oldest go |
//! | the file open already, in this process or another | refused |
//!
//! | it was removed while it is open | made anew with all records; another file is left |
//! | it is another owner's, and others may write it | refused |
//!
//! The file is made readable to its owner only: it lists the addresses of visitors.

use core::net::IpAddr;
use std::fs::{File, OpenOptions};
use std::hash::RandomState;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use headstart_startup::history::Record;
use headstart_units::Time;
use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Reason};
use crate::slot::{self, SIZE, Slot};

/// The version of the format.
pub const VERSION: u32 = 1;
/// Peers of the largest history: 256 MiB of file, and some 650 MB of memory.
pub const MAX_SLOTS: usize = 1 << 22;

/// Permissions of all but the owner, and those of them to write.
const OTHERS: u32 = 0o077;
const WRITERS: u32 = 0o022;

const MAGIC: [u8; 8] = *b"hs.histo";
const HEADER: u64 = SIZE as u64;
/// Slots read at once.
const CHUNK: usize = 1024;

/// Findings on opening a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The file that was opened.
    pub path: PathBuf,
    /// Records that can be used.
    pub records: usize,
    /// Records dropped because their checksums were wrong.
    pub damaged: usize,
    /// True if the file ended in the middle of its header or of a record.
    pub truncated: bool,
    /// Records from the future, dated to now.
    pub future: usize,
    /// Records dropped because there was no room for them.
    pub evicted: usize,
}

impl Loaded {
    /// Repairs made, for a log; `None` if there were none. Making room is no repair.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.truncated {
            parts.push("it was cut short".to_owned());
        }
        if self.damaged > 0 {
            parts.push(format!("{} damaged records were dropped", self.damaged));
        }
        if self.future > 0 {
            parts.push(format!("{} records from the future were dated to now", self.future));
        }
        let what = parts.join(", ");
        let Self { path, records, .. } = self;
        (!parts.is_empty())
            .then(|| format!("history file {} repaired: {what}; {records} records remain", path.display()))
    }
}

/// A file and what was in it.
#[derive(Debug)]
pub struct Opened {
    /// The open file, for writing.
    pub file: RecordFile,
    /// All records, the oldest first. A peer may have several; the last is the one that counts.
    pub records: Vec<(IpAddr, Record)>,
    /// Findings on opening.
    pub loaded: Loaded,
}

/// An open history file, locked against other processes.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
    /// In which slot each peer is.
    slots: HashMap<IpAddr, u32, RandomState>,
    free: Vec<u32>,
    /// Slots in the file.
    end: u32,
}

impl RecordFile {
    /// Opens or makes the file, takes it for this process and reads all records, the oldest first.
    ///
    /// # Errors
    /// If it is in use, no history of this version, or cannot be read or written.
    pub fn open(path: &Path, now: Time) -> Result<Opened, Error> {
        let refuse = |reason| Error { path: path.to_owned(), reason };
        let io_error = |doing| move |source| refuse(Reason::Io { doing, source });
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        // Opening a pipe without a writer would block.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                return Err(refuse(Reason::NotRegularFile));
            }
            other => other.map_err(io_error("open it"))?,
        };
        let found = file.metadata().map_err(io_error("read its metadata"))?;
        if !found.is_file() {
            return Err(refuse(Reason::NotRegularFile));
        }
        if found.mode() & OTHERS != 0 {
            let is_ours = found.uid() == rustix::process::geteuid().as_raw();
            if is_ours {
                let own = std::fs::Permissions::from_mode(found.mode() & !OTHERS);
                file.set_permissions(own).map_err(io_error("make it its owner's alone"))?;
            } else if found.mode() & WRITERS != 0 {
                return Err(refuse(Reason::Exposed { mode: found.mode() & 0o777 }));
            }
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(refuse(Reason::InUse)),
            other => other.map_err(io::Error::from).map_err(io_error("lock it"))?,
        }
        let length = file.metadata().map_err(io_error("read its metadata"))?.len();
        let mut loaded = Loaded { path: path.to_owned(), ..Loaded::default() };
        let whole = check_header(&file, length).map_err(refuse)?;
        if !whole {
            loaded.truncated = length > 0;
            file.set_len(0).map_err(io_error("truncate it"))?;
            file.write_all_at(&header(), 0).map_err(io_error("write it"))?;
        }
        let body = if whole { length - HEADER } else { 0 };
        if body / HEADER > MAX_SLOTS as u64 {
            return Err(refuse(Reason::TooLarge { slots: body / HEADER }));
        }
        let end = (body / HEADER) as u32;
        if body % HEADER != 0 {
            loaded.truncated = true;
            file.set_len(offset(end)).map_err(io_error("truncate it"))?;
        }
        let (slots, free) = (HashMap::with_hasher(RandomState::new()), Vec::new());
        let mut opened = Self { path: path.to_owned(), file, slots, free, end };
        let records = opened.load(now, &mut loaded).map_err(io_error("read it"))?;
        opened.sync().map_err(io_error("write it"))?;
        Ok(Opened { file: opened, records, loaded })
    }

    fn load(&mut self, now: Time, loaded: &mut Loaded) -> io::Result<Vec<(IpAddr, Record)>> {
        let mut found = Vec::new();
        let mut chunk = vec![0; CHUNK * SIZE];
        let mut at = 0;
        while at < self.end {
            let count = (self.end - at).min(CHUNK as u32);
            let bytes = &mut chunk[..count as usize * SIZE];
            self.file.read_exact_at(bytes, offset(at))?;
            for (number, bytes) in (at..).zip(bytes.as_chunks::<SIZE>().0) {
                match slot::parse(bytes) {
                    Slot::Free => self.free.push(number),
                    Slot::Used(peer, record) => found.push((number, peer, record)),
                    Slot::Damaged => {
                        loaded.damaged += 1;
                        self.release(number)?;
                    }
                }
            }
            at += count;
        }
        for (number, peer, record) in &mut found {
            if record.saved_at > now {
                loaded.future += 1;
                record.saved_at = now;
                self.file.write_all_at(&slot::emit(*peer, record), offset(*number))?;
            }
        }
        found.sort_by_key(|(number, _, record)| (record.saved_at, *number));
        for (number, peer, _) in &found {
            if let Some(older) = self.slots.insert(*peer, *number) {
                self.release(older)?;
            }
        }
        loaded.records = self.slots.len();
        Ok(found.into_iter().map(|(_, peer, record)| (peer, record)).collect())
    }

    fn release(&mut self, number: u32) -> io::Result<()> {
        self.file.write_all_at(&slot::FREE, offset(number))?;
        self.free.push(number);
        Ok(())
    }

    /// Makes the file anew, without records, if it is not at its path any more: true then.
    ///
    /// # Errors
    /// If another file is there, or the system does not let it.
    pub fn remake_if_removed(&mut self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (own.dev(), own.ino()) => return Ok(false),
            Ok(_) => return Err(io::Error::other("another file has taken its place")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&self.path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all_at(&header(), 0)?;
        (self.file, self.end) = (file, 0);
        self.slots.clear();
        self.free.clear();
        Ok(true)
    }

    /// Writes a peer's record over its last one, or into a free slot.
    ///
    /// # Errors
    /// If the system cannot write it.
    pub fn put(&mut self, peer: IpAddr, record: &Record) -> io::Result<()> {
        let bytes = slot::emit(peer, record);
        if let Some(&number) = self.slots.get(&peer) {
            return self.file.write_all_at(&bytes, offset(number));
        }
        let number = self.free.last().copied().unwrap_or(self.end);
        self.file.write_all_at(&bytes, offset(number))?;
        if self.free.pop().is_none() {
            self.end += 1;
        }
        self.slots.insert(peer, number);
        Ok(())
    }

    /// Frees a peer's slot, if it has one.
    ///
    /// # Errors
    /// If the system cannot write it.
    pub fn remove(&mut self, peer: IpAddr) -> io::Result<()> {
        let Some(&number) = self.slots.get(&peer) else { return Ok(()) };
        self.release(number)?;
        self.slots.remove(&peer);
        Ok(())
    }

    /// Returns the memory by which the directory has outgrown its records: a table that is full of
    /// removed entries doubles before it reuses their places.
    pub fn shrink_directory(&mut self) {
        if self.slots.capacity() > 2 * self.slots.len() {
            self.slots.shrink_to_fit();
        }
    }

    /// Moves records from slots above `capacity` into free ones before it and cuts the file off.
    /// Killed in between, it leaves records in two slots; the next one to open it keeps the newest.
    ///
    /// # Errors
    /// If the system cannot read or write.
    pub fn shrink(&mut self, capacity: u32) -> io::Result<()> {
        if self.end <= capacity {
            return Ok(());
        }
        self.free.retain(|number| *number < capacity);
        let beyond: Vec<_> = self.slots.iter().filter(|(_, number)| **number >= capacity).collect();
        let beyond: Vec<_> = beyond.into_iter().map(|(peer, number)| (*peer, *number)).collect();
        for (peer, number) in beyond {
            // There is room as long as there are not more records than slots; if there were, the
            // file stays as long.
            let Some(place) = self.free.pop() else { return Ok(()) };
            let mut bytes = slot::FREE;
            self.file.read_exact_at(&mut bytes, offset(number))?;
            self.file.write_all_at(&bytes, offset(place))?;
            self.slots.insert(peer, place);
        }
        self.sync()?;
        self.file.set_len(offset(capacity))?;
        self.end = capacity;
        Ok(())
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    /// If the system reports that it could not write.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// All records of the file.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.slots.keys().copied()
    }

    /// Memory that the directory takes.
    #[must_use]
    pub fn directory_bytes(&self) -> usize {
        self.slots.allocation_size() + self.free.capacity() * size_of::<u32>()
    }

    /// Length of the file, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        offset(self.end)
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn offset(number: u32) -> u64 {
    HEADER + u64::from(number) * SIZE as u64
}

fn header() -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(SIZE as u32).to_le_bytes());
    let sum = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// True if the header is whole; `false` if the file is empty or holds only its beginning.
fn check_header(file: &File, length: u64) -> Result<bool, Reason> {
    let mut bytes = [0; SIZE];
    let there = length.min(HEADER) as usize;
    let bytes = &mut bytes[..there];
    file.read_exact_at(bytes, 0).map_err(|source| Reason::Io { doing: "read it", source })?;
    if header().starts_with(bytes) {
        return Ok(there == SIZE);
    }
    if bytes.iter().zip(MAGIC).any(|(found, expected)| *found != expected) {
        return Err(Reason::UnknownFormat);
    }
    match bytes.get(8..12).and_then(|version| version.try_into().ok()).map(u32::from_le_bytes) {
        Some(found) if found != VERSION => Err(Reason::Version { found }),
        _ => Err(Reason::Header),
    }
}

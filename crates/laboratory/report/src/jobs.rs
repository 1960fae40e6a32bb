//! Results of finished jobs, kept in the folder of results: an interrupted run resumes.
//!
//! A job's result is one line of `runs.jsonl`, appended when it is known. It has the fingerprint of
//! the program that wrote it, and a key: a hash of all that decides the result, contents of input
//! files included. Results of another program are never returned. Lines that are cut short or
//! damaged are ignored, and their jobs run again.
//!
//! [`JobStore::close`] writes the file anew, ordered by key and without other programs' lines: the
//! same bytes however the work was cut up.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use headstart_host::locked;
use headstart_units::hash::{FNV128, by_words, fnv128};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::output::{Folder, OutputError};

/// The file of finished jobs.
const FILE: &str = "runs.jsonl";

/// The finished jobs of one folder. It holds the folder, so that no second run writes to it.
#[derive(Debug)]
pub struct JobStore {
    folder: Folder,
    program: String,
    state: Mutex<State>,
    result_count: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    results: BTreeMap<String, Kept>,
    /// Opened with the first result that is read or written.
    reader: Option<File>,
    /// Opened with the first result of this run.
    writer: Option<File>,
    /// Nothing more is written.
    cannot_write: bool,
}

#[derive(Debug)]
struct Kept {
    line: Place,
    from: Run,
}

/// The line of a result. Of a long sweep they are gigabytes, so that they stay in the file.
#[derive(Debug)]
enum Place {
    File { at: u64, length: usize },
    Memory(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// An earlier one.
    Earlier,
    /// An earlier one, and the result was given back.
    Reused,
    This,
}

impl State {
    /// Finds the lines of `program`.
    fn read(&mut self, path: &Path, program: &str) -> io::Result<()> {
        let mut lines = BufReader::new(self.reader.insert(File::open(path)?));
        let (mut at, mut line) = (0, vec![]);
        while lines.read_until(b'\n', &mut line)? > 0 {
            if let Ok(found) = serde_json::from_slice::<Line<IgnoredAny>>(&line)
                && found.program == program
            {
                let place = Place::File { at, length: line.len() };
                self.results.insert(found.key, Kept { line: place, from: Run::Earlier });
            }
            at += line.len() as u64;
            line.clear();
        }
        Ok(())
    }

    /// Appends a line, and returns its place.
    fn append(&mut self, path: &Path, line: &str) -> io::Result<Place> {
        let file = match &mut self.writer {
            Some(file) => file,
            none => none.insert(ended(OpenOptions::new().create(true).append(true).open(path)?, path)?),
        };
        if self.reader.is_none() {
            self.reader = Some(File::open(path)?);
        }
        let at = file.seek(SeekFrom::End(0))?;
        file.write_all(line.as_bytes())?;
        Ok(Place::File { at, length: line.len() })
    }

    fn line(&mut self, key: &str) -> Option<Vec<u8>> {
        match &self.results.get(key)?.line {
            Place::Memory(line) => Some(line.clone()),
            Place::File { at, length } => {
                let mut line = vec![0; *length];
                let file = self.reader.as_mut()?;
                file.seek(SeekFrom::Start(*at)).and_then(|_| file.read_exact(&mut line)).ok()?;
                Some(line)
            }
        }
    }
}

#[derive(Deserialize, Serialize)]
struct Line<R> {
    program: String,
    key: String,
    result: R,
}

impl JobStore {
    /// Reads what this program has finished in `folder`.
    ///
    /// # Errors
    /// If the file of finished jobs, or the program itself, cannot be read.
    pub fn open(folder: Folder) -> Result<Self, OutputError> {
        Self::of_program(folder, program()?)
    }

    fn of_program(folder: Folder, program: String) -> Result<Self, OutputError> {
        let path = folder.path().join(FILE);
        let mut state = State::default();
        if path.exists() {
            state.read(&path, &program).map_err(|error| failed("read", &path, error))?;
        }
        let result_count = Arc::new(AtomicUsize::new(state.results.len()));
        Ok(Self { folder, program, state: Mutex::new(state), result_count })
    }

    /// The file, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    /// The folder that it holds.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The result of a job that is finished; of a damaged one nothing.
    #[must_use]
    pub fn get<R: DeserializeOwned>(&self, key: &str) -> Option<R> {
        let mut state = self.state();
        let found: Line<R> = serde_json::from_slice(&state.line(key)?).ok()?;
        let kept = state.results.get_mut(key)?;
        if kept.from == Run::Earlier {
            kept.from = Run::Reused;
        }
        Some(found.result)
    }

    /// True if the job is finished.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.state().results.contains_key(key)
    }

    /// Keeps a job's result. It is in the file when this returns, unless an earlier one could not
    /// be written: then only this store has it.
    ///
    /// # Errors
    /// If it is the first that cannot be written.
    pub fn insert<R: Serialize>(&self, key: &str, result: &R) -> Result<(), OutputError> {
        let path = self.path();
        let cannot = |error| failed("write", &path, error);
        let line = Line { program: self.program.clone(), key: key.to_owned(), result };
        let line = serde_json::to_string(&line).map_err(|error| cannot(error.into()))? + "\n";
        let mut state = self.state();
        let written = if state.cannot_write { None } else { Some(state.append(&path, &line)) };
        let (place, written) = match written {
            Some(Ok(place)) => (place, Ok(())),
            Some(Err(error)) => (Place::Memory(line.into_bytes()), Err(error)),
            None => (Place::Memory(line.into_bytes()), Ok(())),
        };
        state.cannot_write |= written.is_err();
        if !state.cannot_write {
            self.result_count.fetch_add(1, Ordering::Relaxed);
        }
        state.results.insert(key.to_owned(), Kept { line: place, from: Run::This });
        written.map_err(cannot)
    }

    /// Number of results in the file, which grows while jobs run.
    #[must_use]
    pub fn result_count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.result_count)
    }

    /// Removes a job's result, if something that belongs to it is lost and it has to run again.
    pub fn remove(&self, key: &str) {
        self.state().results.remove(key);
    }

    /// Number of results taken from an earlier run.
    #[must_use]
    pub fn reused_count(&self) -> usize {
        self.state().results.values().filter(|kept| kept.from == Run::Reused).count()
    }

    /// Writes the file anew, in order.
    ///
    /// # Errors
    /// If it cannot be written; what was kept stays.
    pub fn close(self) -> Result<Folder, OutputError> {
        self.folder.write_with(FILE, |file| {
            let mut state = self.state();
            let keys: Vec<String> = state.results.keys().cloned().collect();
            // One that can be read no more would run again.
            keys.iter().filter_map(|key| state.line(key)).try_for_each(|line| file.write_all(&line))
        })?;
        Ok(self.folder)
    }

    /// Removes the file: nothing of it is needed again.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn discard(self) -> Result<(), OutputError> {
        let path = self.path();
        if path.exists() {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, error))?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// The file that runs the jobs, where it is not the running program: a library of Python's.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Takes this file for the program; the first call counts.
pub fn host(library: PathBuf) {
    let _ = LIBRARY.set(library);
}

/// Identifies the running program; its file is read once.
///
/// # Errors
/// If the file cannot be read.
pub fn program() -> Result<String, OutputError> {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    if let Some(known) = PROGRAM.get() {
        return Ok(known.clone());
    }
    let found = LIBRARY
        .get()
        .map_or_else(std::env::current_exe, |library| Ok(library.clone()))
        .and_then(|path| fingerprint(&path))
        .map_err(|error| failed("read", Path::new("the running program"), error))?;
    Ok(PROGRAM.get_or_init(|| found).clone())
}

/// The key of a job that these texts decide.
#[must_use]
pub fn key<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    // No byte of UTF-8 is 0xff: it marks where a text ends.
    let hash = texts.into_iter().fold(FNV128, |hash, text| fnv128(hash, text.bytes().chain([0xff])));
    format!("{hash:032x}")
}

/// Identifies the sources that a program was built from.
fn fingerprint(program: &Path) -> io::Result<String> {
    let (mut file, mut piece, mut hash) = (File::open(program)?, vec![], 0);
    while (&mut file).take(1 << 16).read_to_end(&mut piece)? > 0 {
        hash = by_words(hash, &piece);
        piece.clear();
    }
    Ok(format!("{} {hash:016x}", env!("CARGO_PKG_VERSION")))
}

/// A run that was interrupted may have left half a line: the next one begins on its own.
fn ended(mut file: File, path: &Path) -> io::Result<File> {
    let mut reader = File::open(path)?;
    let mut last = [b'\n'];
    if reader.seek(SeekFrom::End(0))? > 0 {
        reader.seek(SeekFrom::End(-1))?;
        reader.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn failed(doing: &'static str, path: &Path, error: io::Error) -> OutputError {
    OutputError::Io { doing, path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(name: &str, program: &str) -> JobStore {
        let path = std::env::temp_dir().join(format!("headstart-jobs-{}-{name}", std::process::id()));
        JobStore::of_program(Folder::open(&path).expect("ours"), program.into()).expect("readable")
    }

    fn end(store: JobStore) {
        let path = store.folder().path().to_path_buf();
        drop(store);
        fs::remove_dir_all(path).expect("it is there");
    }

    #[test]
    fn results_come_back_to_the_last_bit() {
        let jobs = store("bits", "a");
        let mut state = 1_u64;
        let numbers: Vec<f64> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 11) as f64 / 1e16
            })
            .collect();
        jobs.insert("numbers", &numbers).expect("written");
        drop(jobs.close().expect("written"));
        let jobs = store("bits", "a");
        let back: Vec<f64> = jobs.get("numbers").expect("kept");
        assert!(back.iter().zip(&numbers).all(|(one, other)| one.to_bits() == other.to_bits()));
        end(jobs);
    }

    #[test]
    fn lines_that_are_damaged_or_cut_short_are_run_again() {
        let jobs = store("damaged", "a");
        for (number, key) in ["one", "two", "three"].into_iter().enumerate() {
            jobs.insert(key, &(number + 1)).expect("written");
        }
        let path = jobs.path();
        drop(jobs);
        let text = fs::read_to_string(&path).expect("written").replacen("\"key\"", "\"k", 1);
        fs::write(&path, &text[..text.len() - 4]).expect("written");
        let jobs = store("damaged", "a");
        let found: Vec<Option<u32>> = ["one", "two", "three"].map(|key| jobs.get(key)).into();
        assert_eq!(found, [None, Some(2), None]);
        assert_eq!(jobs.reused_count(), 1);
        assert_eq!(jobs.get::<String>("two"), None, "a result of another form is none");
        jobs.insert("four", &4).expect("written");
        drop(jobs);
        let jobs = store("damaged", "a");
        assert_eq!((jobs.get("two"), jobs.get("four")), (Some(2), Some(4)), "half a line spoils no other");
        end(jobs);
    }

    #[test]
    fn results_of_another_program_are_not_used() {
        let jobs = store("program", "a");
        jobs.insert("one", &1).expect("written");
        drop(jobs);
        let jobs = store("program", "b");
        assert_eq!(jobs.get::<u32>("one"), None);
        drop(jobs);
        let jobs = store("program", "a");
        assert_eq!(
            jobs.get::<u32>("one"),
            Some(1),
            "they are there until a run of another program is complete"
        );
        end(jobs);
    }

    #[test]
    fn a_closed_store_does_not_depend_on_the_order_of_its_results() {
        let texts = [["one", "two"], ["two", "one"]].map(|keys| {
            let jobs = store("order", "a");
            keys.iter().for_each(|key| jobs.insert(key, &key.len()).expect("written"));
            let path = jobs.path();
            drop(jobs.close().expect("written"));
            let text = fs::read_to_string(path).expect("written");
            end(store("order", "a"));
            text
        });
        assert_eq!(texts[0], texts[1]);
        assert_eq!(texts[0].lines().count(), 2);
    }

    #[test]
    fn keys_depend_on_the_ends_of_their_texts() {
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
        assert_ne!(key(["a", ""]), key(["a"]));
    }

    #[test]
    fn a_program_with_one_more_byte_is_another() {
        let path = std::env::temp_dir().join(format!("headstart-program-{}", std::process::id()));
        let prints = [&b"program"[..], b"program\0"].map(|bytes| {
            fs::write(&path, bytes).expect("a temporary file");
            fingerprint(&path).expect("readable")
        });
        fs::remove_file(&path).expect("it is there");
        assert_ne!(prints[0], prints[1]);
    }
}

//! Result files: each is whole or not there, in a folder that is known to be ours.
//!
//! A file is written in its folder under a name that begins with a dot, and renamed when it is
//! complete. A run that is interrupted leaves the previous result, or none, and at most one file
//! ending in `.partial`, which the next run overwrites.
//!
//! A folder is ours if it holds the marker file `.headstart`. A new or empty folder receives it;
//! any other folder is refused, so that a mistyped path cannot overwrite other files.
//!
//! One run at a time writes to a folder: the process that opens it locks the file `.lock`, and
//! removes it at its end. The operating system releases the lock however the process ends.
//!
//! # Limits
//!
//! Files of an earlier run that the present one does not write stay. A file system without locks
//! lets two runs in.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use headstart_host::locked;

/// The file that makes a folder ours.
const MARKER: &str = ".headstart";

/// Content of the marker, for a reader of the folder.
const MARKER_TEXT: &str =
    "Results written by headstart. While this file is here, headstart may replace the others.\n";

/// The file that the writer of the folder holds locked.
const LOCK: &str = ".lock";

/// A folder of results, held until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked, where the file system can.
    lock: Option<Arc<Lock>>,
}

/// The locked file and its path.
#[derive(Debug)]
struct Lock {
    /// Closed where a forked process has forgotten it.
    file: Mutex<Option<File>>,
    path: PathBuf,
}

impl Drop for Lock {
    /// Elsewhere the file stays: whether another run has it cannot be told.
    fn drop(&mut self) {
        if cfg!(unix) && locked(&self.file).is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// True if the file at `path` is this one, as far as the system tells.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |found: io::Result<fs::Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
        place(file.metadata()) == place(fs::metadata(path))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder holds something that is not ours.
    #[error("{}: found `{found}`, expected a new or empty folder or one with earlier results (it has no `{MARKER}`)", folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// One of the things in it, the first by name.
        found: String,
    },
    /// Results of another command are there, whose files have the same names.
    #[error("{}: found results of `{found}`, expected a new folder or one of `{expected}`: write elsewhere with --out", folder.display())]
    OfAnother {
        /// The folder.
        folder: PathBuf,
        /// The command.
        found: String,
        /// The command that is to write there.
        expected: String,
    },
    /// Another run writes to it.
    #[error("{}: found another headstart at work in this folder, expected none: wait until it ends, or write elsewhere with --out", .0.display())]
    InUse(PathBuf),
    /// There is a file where the folder should be.
    #[error("{}: found a file, expected a folder", .0.display())]
    NotAFolder(PathBuf),
    /// A name that is empty, begins with a dot or leaves the folder.
    #[error("found {0:?}, expected a plain file name that does not begin with a dot")]
    BadName(String),
    /// A row of a CSV file has another number of fields than its header.
    #[error("{name}, row {row}: found {found} fields, expected the {expected} of the header")]
    Ragged {
        /// The file.
        name: String,
        /// Which row, counted from 1 below the header.
        row: usize,
        /// Fields of the row.
        found: usize,
        /// The header's fields.
        expected: usize,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// The operation, as in "create".
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
}

impl Folder {
    /// Creates the folder, with those above it, or takes over an empty one or ours, and holds it.
    ///
    /// # Errors
    /// It is not ours, another run holds it, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(OutputError::NotAFolder(path.to_path_buf()));
        }
        fs::create_dir_all(path).map_err(|error| failed("create", path, error))?;
        let mut folder = Self { path: path.to_path_buf(), lock: None };
        let marker = path.join(MARKER);
        if !marker.is_file() {
            folder.refuse_foreign()?;
            replace(&marker, |file| file.write_all(MARKER_TEXT.as_bytes()))?;
        }
        folder.lock = folder.locked()?;
        Ok(folder)
    }

    /// This folder, if it holds nothing or results of this command.
    ///
    /// # Errors
    /// [`OutputError::OfAnother`], or the system refuses.
    pub fn of_command(self, command: &str) -> Result<Self, OutputError> {
        const KEY: &str = "Command: ";
        let marker = self.path.join(MARKER);
        let text = fs::read_to_string(&marker).map_err(|error| failed("read", &marker, error))?;
        match text.lines().find_map(|line| line.strip_prefix(KEY)) {
            Some(found) if found == command => {}
            Some(found) => {
                return Err(OutputError::OfAnother {
                    folder: self.path,
                    found: found.to_owned(),
                    expected: command.to_owned(),
                });
            }
            None => replace(&marker, |file| writeln!(file, "{MARKER_TEXT}{KEY}{command}"))?,
        }
        Ok(self)
    }

    /// A folder in this one, under the same rules.
    pub fn folder(&self, name: &str) -> Result<Self, OutputError> {
        Self::open(&self.place(name)?)
    }

    /// Leaves the folder to the process that this one was forked from. A copy of its lock would
    /// outlast that process.
    pub fn forget(&self) {
        self.lock.iter().for_each(|lock| drop(locked(&lock.file).take()));
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file whole.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, OutputError> {
        self.write_with(name, |file| file.write_all(content))
    }

    /// Writes a file in pieces; if `fill` fails the file is as it was before.
    pub fn write_with(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, OutputError> {
        let place = self.place(name)?;
        replace(&place, fill)?;
        Ok(place)
    }

    /// Writes a CSV file: RFC 4180 quoting where a field needs it; lines end with a line feed.
    pub fn write_csv<Row, Field>(
        &self,
        name: &str,
        header: &[&str],
        rows: impl IntoIterator<Item = Row>,
    ) -> Result<PathBuf, OutputError>
    where
        Row: AsRef<[Field]>,
        Field: AsRef<str>,
    {
        let mut ragged = None;
        let written = self.write_with(name, |file| {
            let mut writer = csv_writer(file);
            writer.write_record(header)?;
            for (index, row) in rows.into_iter().enumerate() {
                let row = row.as_ref();
                if row.len() != header.len() {
                    ragged = Some((index + 1, row.len()));
                    return Err(io::Error::other("ragged"));
                }
                writer.write_record(row.iter().map(|field| field.as_ref().as_bytes()))?;
            }
            writer.flush()
        });
        match ragged {
            Some((row, found)) => {
                Err(OutputError::Ragged { name: name.to_owned(), row, found, expected: header.len() })
            }
            None => written,
        }
    }

    fn locked(&self) -> Result<Option<Arc<Lock>>, OutputError> {
        let path = self.path.join(LOCK);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|error| failed("write", &path, error))?;
        match file.try_lock() {
            // The run that held it may have removed it in between.
            Ok(()) if !is_at(&file, &path) => self.locked(),
            Ok(()) => Ok(Some(Arc::new(Lock { file: Mutex::new(Some(file)), path }))),
            Err(TryLockError::WouldBlock) => Err(OutputError::InUse(self.path.clone())),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, error)),
        }
    }

    fn place(&self, name: &str) -> Result<PathBuf, OutputError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0']) {
            return Err(OutputError::BadName(name.to_owned()));
        }
        Ok(self.path.join(name))
    }

    fn refuse_foreign(&self) -> Result<(), OutputError> {
        let mut found: Option<String> = None;
        for entry in fs::read_dir(&self.path).map_err(|error| failed("read", &self.path, error))? {
            let name = entry.map_err(|error| failed("read", &self.path, error))?.file_name();
            let name = name.to_string_lossy().into_owned();
            // A run that was interrupted while it wrote the marker left this.
            if name != ".headstart.partial" && found.as_ref().is_none_or(|first| name < *first) {
                found = Some(name);
            }
        }
        match found {
            Some(found) => Err(OutputError::Foreign { folder: self.path.clone(), found }),
            None => Ok(()),
        }
    }
}

/// The text of a CSV file, as [`Folder::write_csv`] writes it.
#[must_use]
pub fn csv_text<Name: AsRef<str>>(header: &[Name], rows: &[Vec<String>]) -> String {
    let mut writer = csv_writer(Vec::new());
    let mut write = |record: Vec<&str>| writer.write_record(record).expect("a vector takes any record");
    write(header.iter().map(AsRef::as_ref).collect());
    rows.iter().for_each(|row| write(row.iter().map(String::as_str).collect()));
    let bytes = writer.into_inner().expect("a vector takes any record");
    String::from_utf8(bytes).expect("fields are text")
}

/// The one writer of CSV: RFC 4180 quoting where a field needs it, lines end in a plain line feed.
/// The number of fields is for the caller to check.
pub(crate) fn csv_writer<W: Write>(to: W) -> csv::Writer<W> {
    csv::WriterBuilder::new().flexible(true).from_writer(to)
}

/// Writes a file of a given name, whole or not at all.
///
/// # Errors
/// The system refuses; then it is as it was before.
pub fn write_file(place: &Path, content: &[u8]) -> Result<(), OutputError> {
    replace(place, |file| file.write_all(content))
}

fn replace(place: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let partial = place.with_file_name(format!(".{}.partial", name.trim_start_matches('.')));
    let outcome = fill_file(&partial, fill)
        .map_err(|error| failed("write", place, error))
        .and_then(|()| fs::rename(&partial, place).map_err(|error| failed("replace", place, error)));
    if outcome.is_err() {
        // The first failure is reported; what this one leaves behind is overwritten next time.
        let _ = fs::remove_file(&partial);
    }
    outcome
}

/// On the disk when it returns: a rename must never overtake the content.
fn fill_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    fill(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

fn failed(doing: &'static str, path: &Path, error: io::Error) -> OutputError {
    OutputError::Io { doing, path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, gone when it ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("headstart-output-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(self.0.join(folder))
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_belongs_to_the_command_that_wrote_there_first() {
        let scratch = Scratch::new("of-command");
        let open = || Folder::open(&scratch.0).expect("a folder");
        for _ in 0..2 {
            open().of_command("race").expect("its own");
        }
        let refused = open().of_command("sweep").expect_err("of a race").to_string();
        assert!(
            refused.contains("found results of `race`, expected a new folder or one of `sweep`"),
            "{refused}"
        );
    }

    #[test]
    fn a_new_folder_is_created_and_found_again() {
        let scratch = Scratch::new("new");
        let path = scratch.0.join("a/b");
        let folder = Folder::open(&path).expect("nothing in the way");
        folder.write("one.txt", b"first").expect("a plain name");
        drop(folder);
        let again = Folder::open(&path).expect("it is ours");
        again.write("one.txt", b"second").expect("a plain name");
        assert_eq!(fs::read(path.join("one.txt")).expect("written"), b"second");
        assert_eq!(scratch.names("a/b"), [".headstart", ".lock", "one.txt"], "nothing is left over");
        again.folder("inner").expect("nothing in the way").write("two.txt", b"2").expect("a plain name");
        assert_eq!(scratch.names("a/b/inner"), [".headstart", "two.txt"], "nobody holds it any more");
    }

    #[test]
    fn a_folder_with_other_files_is_refused_and_unchanged() {
        let scratch = Scratch::new("foreign");
        fs::write(scratch.0.join("thesis.tex"), "years of work").expect("a temporary file");
        let error = Folder::open(&scratch.0).expect_err("somebody's work").to_string();
        assert!(error.contains("found `thesis.tex`, expected a new or empty folder"), "{error}");
        assert_eq!(scratch.names("."), ["thesis.tex"]);
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_refused() {
        let scratch = Scratch::new("file");
        let path = scratch.0.join("results");
        fs::write(&path, "x").expect("a temporary file");
        assert!(matches!(Folder::open(&path), Err(OutputError::NotAFolder(found)) if found == path));
        let error = Folder::open(&path.join("deeper")).expect_err("a file above it").to_string();
        assert!(error.starts_with("cannot create "), "{error}");
    }

    #[test]
    fn an_interrupted_first_run_does_not_lock_the_folder() {
        let scratch = Scratch::new("interrupted");
        fs::write(scratch.0.join(".headstart.partial"), "Resul").expect("a temporary file");
        Folder::open(&scratch.0).expect("only our own leftovers");
        assert_eq!(scratch.names("."), [".headstart"]);
    }

    #[test]
    fn a_second_run_in_one_folder_is_refused_until_the_first_ends() {
        let scratch = Scratch::new("second");
        let first = Folder::open(&scratch.0).expect("empty");
        let other = first.clone();
        drop(first);
        let error = Folder::open(&scratch.0).expect_err("a clone holds it").to_string();
        assert!(error.contains("found another headstart at work in this folder"), "{error}");
        drop(other);
        Folder::open(&scratch.0).expect("nobody holds it");
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_was_removed_and_made_anew_is_another() {
        let scratch = Scratch::new("anew");
        let path = scratch.0.join(LOCK);
        let old = File::create(&path).expect("a temporary file");
        assert!(is_at(&old, &path));
        fs::remove_file(&path).expect("it is there");
        assert!(!is_at(&old, &path));
        File::create(&path).expect("a temporary file");
        assert!(!is_at(&old, &path));
    }

    #[test]
    fn a_writer_that_fails_leaves_the_previous_result() {
        let scratch = Scratch::new("half");
        let folder = Folder::open(&scratch.0).expect("empty");
        folder.write("result.csv", b"whole").expect("a plain name");
        let error = folder
            .write_with("result.csv", |file| {
                file.write_all(&[b'x'; 100_000])?;
                Err(io::Error::other("out of numbers"))
            })
            .expect_err("the writer failed");
        assert!(error.to_string().ends_with("result.csv: out of numbers"), "{error}");
        assert_eq!(fs::read(scratch.0.join("result.csv")).expect("written"), b"whole");
        assert_eq!(scratch.names("."), [".headstart", ".lock", "result.csv"]);
    }

    #[test]
    fn names_stay_in_the_folder() {
        let scratch = Scratch::new("names");
        let folder = Folder::open(&scratch.0).expect("empty");
        for name in ["", ".", "..", "../x", "a/b", "/etc/x", "a\\b", "c:x", ".headstart", "a\0b"] {
            assert!(matches!(folder.write(name, b""), Err(OutputError::BadName(_))), "{name:?}");
        }
    }

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        let scratch = Scratch::new("csv");
        let folder = Folder::open(&scratch.0).expect("empty");
        let rows = [["plain", "1.5"], ["comma, here", "a \"quote\""], ["two\nlines", ""]];
        let path = folder.write_csv("table.csv", &["name", "value"], rows).expect("even rows");
        let text = fs::read_to_string(path).expect("written");
        assert_eq!(text, "name,value\nplain,1.5\n\"comma, here\",\"a \"\"quote\"\"\"\n\"two\nlines\",\n");
    }

    #[test]
    fn a_ragged_row_is_refused_and_nothing_is_written() {
        let scratch = Scratch::new("ragged");
        let folder = Folder::open(&scratch.0).expect("empty");
        let rows = [vec!["1", "2"], vec!["3"]];
        let error = folder.write_csv("table.csv", &["a", "b"], rows).expect_err("one field is missing");
        assert_eq!(error.to_string(), "table.csv, row 2: found 1 fields, expected the 2 of the header");
        drop(folder);
        assert_eq!(scratch.names("."), [".headstart"]);
    }
}

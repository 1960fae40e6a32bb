//! Files of many rows, written as they come: CSV, or Parquet in a build with the feature `parquet`.
//!
//! Runs on several threads each write a *part*: lines of CSV without a header, in a file of their
//! own. When all are done the parts are appended in a given order to one [`RowWriter`], each behind
//! the constants of its run. So memory does not grow with the rows, and the file is the same bytes
//! whatever the number of threads.
//!
//! A row file is written in its folder under a name that begins with a dot, and renamed when it
//! is complete; if that does not happen it is removed.
//!
//! # Limits
//!
//! Parquet's numbers are 64-bit integers and doubles; a field that was not measured is null. Row
//! groups have 65 536 rows.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::output::{OutputError, csv_writer};

#[cfg(feature = "parquet")]
mod columnar;

/// Checks that this program writes Parquet.
///
/// # Errors
/// If not; says how to get one that does.
pub fn can_write_parquet(found: &str, expected: &str) -> Result<(), String> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    Err(format!(
        "found `{found}`, and this program was built without Parquet: expected {expected}, or a program of \
         `cargo install --path crates/command --features parquet` (`full` has it too)"
    ))
}

/// A table as Parquet; an empty field is null.
///
/// # Errors
/// In a program without Parquet, if the rows are not all as long as the header, and if a field is
/// not of its column's kind.
pub fn parquet_bytes(columns: &[Column], rows: &[Vec<String>]) -> io::Result<Vec<u8>> {
    #[cfg(feature = "parquet")]
    {
        let mut writer = columnar::Columnar::new(vec![], columns)?;
        for row in rows {
            check(row.len(), columns.len())?;
            writer.row(row.iter().map(String::as_str))?;
        }
        writer.close()
    }
    #[cfg(not(feature = "parquet"))]
    {
        let _ = (columns, rows);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Columns of fields whose kinds nobody declared: one is of whole numbers or of numbers if all its
/// fields are.
#[must_use]
pub fn inferred<Name: AsRef<str>>(header: &[Name], rows: &[Vec<String>]) -> Vec<Column> {
    let kind = |column: usize| {
        let of = || rows.iter().filter_map(|row| row.get(column)).filter(|field| !field.is_empty());
        match () {
            () if of().all(|field| field.parse::<i64>().is_ok()) => Kind::Count,
            () if of().all(|field| field.parse::<f64>().is_ok()) => Kind::Number,
            () => Kind::Text,
        }
    };
    header.iter().enumerate().map(|(at, name)| Column::new(name.as_ref(), kind(at))).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Parquet,
}

/// Destination of rows; the extension of its name selects the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFile {
    path: PathBuf,
    format: Format,
}

impl FromStr for RowFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let format = match extension.as_deref() {
            Some("csv") => Format::Csv,
            Some("parquet") => {
                can_write_parquet(text, "a name that ends in .csv")?;
                Format::Parquet
            }
            _ => return Err(format!("found `{text}`, expected a name that ends in .csv or .parquet")),
        };
        Ok(Self { path, format })
    }
}

impl fmt::Display for RowFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl RowFile {
    /// Begins the file, under its temporary name.
    ///
    /// # Errors
    /// If it cannot be created: the folder is not there, or not ours to write to.
    pub fn create(&self, columns: Vec<Column>) -> Result<RowWriter, OutputError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let partial = self.path.with_file_name(format!(".{name}.partial"));
        if self.path.is_dir() {
            return Err(failed("write", &self.path, io::ErrorKind::IsADirectory.into()));
        }
        let file = File::create(&partial).map_err(|error| failed("create", &self.path, error))?;
        let guard = TemporaryFile { path: partial, is_kept: false };
        let mut to: Box<dyn Sink> = match self.format {
            Format::Csv => Box::new(BufWriter::new(file)),
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(
                columnar::Columnar::new(file, &columns)
                    .map_err(|error| failed("write", &self.path, error))?,
            ),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => {
                return Err(failed("write", &self.path, io::ErrorKind::Unsupported.into()));
            }
        };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        to.header(&names).map_err(|error| failed("write", &self.path, error))?;
        Ok(RowWriter { place: self.path.clone(), columns: columns.len(), to, guard, rows: 0 })
    }
}

/// A column of a row file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name of the column, with its unit.
    pub name: String,
    /// Type of its fields.
    pub kind: Kind,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// A table as text; an empty field was not measured.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Table {
    /// Name and kind of each field of a row.
    pub columns: Vec<Column>,
    /// Fields as text, in the order of the columns; an empty one was not measured.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The names of its columns.
    #[must_use]
    pub fn header(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// Adds the rows of another table. All that have any have the same columns.
    pub fn append(&mut self, mut other: Self) {
        if !other.rows.is_empty() {
            self.rows.append(&mut other.rows);
            self.columns = other.columns;
        }
    }
}

/// Type of the fields of a column. An empty field was not measured.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Words.
    Text,
    /// Whole numbers.
    Count,
    /// Numbers.
    Number,
}

/// Rows in memory, each column by the type of its fields: for millions of them.
#[derive(Clone, Debug)]
pub struct TypedRows {
    /// Names of the columns, each with its fields.
    pub columns: Vec<(String, TypedFields)>,
}

/// The fields of a column, without a place for what was not measured: options would take twice
/// the memory.
#[derive(Clone, Debug)]
pub enum TypedFields {
    /// Texts, and for each field the place of its own among them. An empty one was not measured.
    Text(Vec<String>, Vec<u32>),
    /// Whole numbers; [`u64::MAX`] was not measured.
    Count(Vec<u64>),
    /// Numbers; not a number was not measured.
    Number(Vec<f64>),
}

impl TypedFields {
    fn push(&mut self, field: &str) -> Result<(), String> {
        fn parsed<T: FromStr>(field: &str, nothing: T) -> Result<T, String> {
            let number = || field.parse().map_err(|_| format!("found `{field}`, expected a number"));
            if field.is_empty() { Ok(nothing) } else { number() }
        }
        match self {
            // There are few different ones, and most repeat the row before.
            Self::Text(texts, places) => {
                let last = places.last().map(|place| *place as usize).filter(|at| texts[*at] == field);
                let known = last.or_else(|| texts.iter().position(|text| text == field));
                let place = known.unwrap_or_else(|| {
                    texts.push(field.to_owned());
                    texts.len() - 1
                });
                places.push(u32::try_from(place).map_err(|_| "found too many texts".to_owned())?);
            }
            Self::Count(values) => values.push(parsed(field, u64::MAX)?),
            Self::Number(values) => values.push(parsed(field, f64::NAN)?),
        }
        Ok(())
    }
}

impl TypedRows {
    /// No rows yet.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        let empty = |kind| match kind {
            Kind::Text => TypedFields::Text(vec![], vec![]),
            Kind::Count => TypedFields::Count(vec![]),
            Kind::Number => TypedFields::Number(vec![]),
        };
        Self { columns: columns.into_iter().map(|one| (one.name, empty(one.kind))).collect() }
    }

    /// Appends the rows of a part, each behind `constants`.
    ///
    /// # Errors
    /// If the part cannot be read, or a row has not as many fields as columns, or a field is of
    /// another type.
    pub fn append(&mut self, constants: &[String], part: &Path) -> Result<(), OutputError> {
        let mut add = || -> io::Result<()> {
            let file = BufReader::new(File::open(part)?);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file);
            let mut record = csv::StringRecord::new();
            while reader.read_record(&mut record)? {
                check(constants.len() + record.len(), self.columns.len())?;
                let fields = constants.iter().map(String::as_str).chain(&record);
                for ((name, values), field) in self.columns.iter_mut().zip(fields) {
                    values.push(field).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
                }
            }
            Ok(())
        };
        add().map_err(|error| failed("read", part, error))
    }
}

/// A field of a row.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A text.
    Text(String),
    /// A count.
    Count(u64),
    /// No count was taken.
    NoCount,
    /// A measurement, if there is one.
    Number(Option<f64>),
}

impl fmt::Display for Value {
    /// Values without a measurement are empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => count.fmt(f),
            Self::Number(Some(number)) => number.fmt(f),
            Self::NoCount | Self::Number(None) => Ok(()),
        }
    }
}

impl Value {
    /// Kind of a column of such values.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Count(_) | Self::NoCount => Kind::Count,
            Self::Number(_) => Kind::Number,
        }
    }
}

/// A row file that is being written.
pub struct RowWriter {
    place: PathBuf,
    columns: usize,
    to: Box<dyn Sink>,
    guard: TemporaryFile,
    rows: u64,
}

impl fmt::Debug for RowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowWriter({})", self.place.display())
    }
}

impl RowWriter {
    /// Appends the rows of a part, each behind `constants`.
    ///
    /// # Errors
    /// If the part cannot be read, a row has not as many fields as columns, or the disk is full.
    pub fn append(&mut self, constants: &[String], part: &Path) -> Result<(), OutputError> {
        let file = File::open(part).map_err(|error| failed("read", part, error))?;
        let rows = self.to.append(constants, self.columns, Box::new(BufReader::new(file)));
        self.rows += rows.map_err(|error| failed("write", &self.place, error))?;
        Ok(())
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// If the disk is full, or the place cannot be replaced.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        let Self { place, to, mut guard, .. } = self;
        // A rename must never overtake the content.
        let file = to.finish().map_err(|error| failed("write", &place, error))?;
        file.sync_all().map_err(|error| failed("write", &place, error))?;
        fs::rename(&guard.path, &place).map_err(|error| failed("replace", &place, error))?;
        guard.is_kept = true;
        Ok(place)
    }
}

/// The file under its temporary name; removed unless it was put in its place.
struct TemporaryFile {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Takes rows in one format.
trait Sink {
    fn header(&mut self, names: &[&str]) -> io::Result<()>;
    fn append(&mut self, constants: &[String], columns: usize, part: Box<dyn Read>) -> io::Result<u64>;
    fn finish(self: Box<Self>) -> io::Result<File>;
}

impl Sink for BufWriter<File> {
    fn header(&mut self, names: &[&str]) -> io::Result<()> {
        let mut writer = csv_writer(self);
        writer.write_record(names)?;
        writer.flush()
    }

    fn append(&mut self, constants: &[String], columns: usize, part: Box<dyn Read>) -> io::Result<u64> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(part);
        let mut writer = csv_writer(self);
        let (mut record, mut rows) = (csv::ByteRecord::new(), 0);
        while reader.read_byte_record(&mut record)? {
            check(constants.len() + record.len(), columns)?;
            writer.write_record(constants.iter().map(String::as_bytes).chain(&record))?;
            rows += 1;
        }
        writer.flush()?;
        Ok(rows)
    }

    fn finish(self: Box<Self>) -> io::Result<File> {
        (*self).into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn check(found: usize, expected: usize) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(io::Error::other(format!("found a row of {found} fields, expected the {expected} of the header")))
}

fn failed(doing: &'static str, path: &Path, error: io::Error) -> OutputError {
    OutputError::Io { doing, path: path.to_path_buf(), error }
}

/// A part that is being written: lines of CSV. It is there under its name only when it is complete.
#[derive(Debug)]
pub struct PartWriter {
    place: PathBuf,
    partial: PathBuf,
    writer: csv::Writer<BufWriter<File>>,
    /// The first failure: what follows is not written.
    failure: Option<io::Error>,
}

impl PartWriter {
    /// Begins the part.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(place: &Path) -> Result<Self, OutputError> {
        let partial = place.with_extension("partial");
        let file = File::create(&partial).map_err(|error| failed("create", &partial, error))?;
        let writer = csv_writer(BufWriter::new(file));
        Ok(Self { place: place.to_path_buf(), partial, writer, failure: None })
    }

    /// Adds a row. [`PartWriter::finish`] returns its error.
    pub fn row<Field: AsRef<[u8]>>(&mut self, fields: impl IntoIterator<Item = Field>) {
        if self.failure.is_none() {
            self.failure = self.writer.write_record(fields).err().map(Into::into);
        }
    }

    /// Completes the part.
    ///
    /// # Errors
    /// The first failure.
    pub fn finish(self) -> Result<(), OutputError> {
        let Self { place, partial, writer, failure } = self;
        let written = match failure {
            Some(error) => Err(error),
            None => writer.into_inner().map_err(|error| error.into_error()).and_then(|mut file| file.flush()),
        };
        written.and_then(|()| fs::rename(&partial, &place)).map_err(|error| failed("write", &place, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("headstart-rows-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        path
    }

    fn columns() -> Vec<Column> {
        [("scheme", Kind::Text), ("seed", Kind::Count), ("phase", Kind::Text), ("size_bytes", Kind::Count)]
            .into_iter()
            .chain([("completion_ms", Kind::Number)])
            .map(|(name, kind)| Column::new(name, kind))
            .collect()
    }

    /// Two parts: a comma in a constant, a field that was not measured.
    fn write(folder: &Path, name: &str) -> PathBuf {
        let parts = ["one", "two"].map(|part| folder.join(part));
        for (number, part) in parts.iter().enumerate() {
            let mut writer = PartWriter::create(part).expect("a new file");
            writer.row(["slow start".to_owned(), (100 + number).to_string(), "12.5".to_owned()]);
            writer.row(["jump", "7", ""]);
            writer.finish().expect("a disk with room");
        }
        let file: RowFile = folder.join(name).to_string_lossy().parse().expect("a known ending");
        let mut writer = file.create(columns()).expect("a folder");
        for (seed, part) in parts.iter().enumerate() {
            writer.append(&["halfback(a=1,b=2)".to_owned(), seed.to_string()], part).expect("five fields");
        }
        assert_eq!(writer.rows(), 4);
        writer.finish().expect("a disk with room")
    }

    #[test]
    fn rows_in_memory_have_the_types_of_their_columns() {
        let folder = scratch("memory");
        let part = folder.join("part");
        let mut writer = PartWriter::create(&part).expect("a new file");
        writer.row(["slow start", "100", "12.5"]);
        writer.row(["", "7", ""]);
        writer.finish().expect("a disk with room");
        let mut rows = TypedRows::new(columns());
        let constants = ["a,b".to_owned(), "3".to_owned()];
        rows.append(&constants, &part).expect("five fields");
        let fields: Vec<String> = rows.columns.iter().map(|(_, fields)| format!("{fields:?}")).collect();
        assert_eq!(
            fields,
            [
                "Text([\"a,b\"], [0, 0])",
                "Count([3, 3])",
                "Text([\"slow start\", \"\"], [0, 1])",
                "Count([100, 7])",
                "Number([12.5, NaN])"
            ]
        );
        let error = rows.append(&constants[..1], &part).expect_err("four fields").to_string();
        assert!(error.contains("4 fields, expected the 5"), "{error}");
        let error = rows.append(&["a".to_owned(), "b".to_owned()], &part).expect_err("a text").to_string();
        assert!(error.contains("seed: found `b`, expected a number"), "{error}");
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn parts_follow_one_another_behind_their_constants() {
        let folder = scratch("csv");
        let text = fs::read_to_string(write(&folder, "flows.csv")).expect("written");
        assert_eq!(
            text,
            "scheme,seed,phase,size_bytes,completion_ms\n\
             \"halfback(a=1,b=2)\",0,slow start,100,12.5\n\"halfback(a=1,b=2)\",0,jump,7,\n\
             \"halfback(a=1,b=2)\",1,slow start,101,12.5\n\"halfback(a=1,b=2)\",1,jump,7,\n"
        );
        fs::remove_dir_all(folder).expect("ours");
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn a_table_becomes_parquet_with_the_types_of_its_fields() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        let row = |fields: [&str; 4]| fields.map(str::to_owned).to_vec();
        let rows = [row(["iw10", "4", "", "1"]), row(["a,b", "5", "2.5", "x"])];
        let bytes = parquet_bytes(&inferred(&["scheme", "flows", "mean_ms", "note"], &rows), &rows)
            .expect("equal rows");
        let path = scratch("table").join("table.parquet");
        fs::write(&path, bytes).expect("a temporary file");
        let reader = SerializedFileReader::new(File::open(&path).expect("written")).expect("Parquet");
        let found: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let text = |text: &str| Field::Str(text.to_owned());
        assert_eq!(
            found,
            [
                [text("iw10"), Field::Long(4), Field::Null, text("1")],
                [text("a,b"), Field::Long(5), Field::Double(2.5), text("x")]
            ]
        );
        assert!(parquet_bytes(&inferred(&["scheme"], &rows), &rows).is_err(), "rows longer than the header");
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_says_the_same_with_types_and_nulls() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        let folder = scratch("parquet");
        let path = write(&folder, "flows.parquet");
        let reader = SerializedFileReader::new(File::open(&path).expect("written")).expect("Parquet");
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        let values = |row: &parquet::record::Row| -> Vec<Field> {
            row.get_column_iter().map(|(_, field)| field.clone()).collect()
        };
        assert_eq!(rows.len(), 4);
        let text = |text: &str| Field::Str(text.into());
        let first = [
            text("halfback(a=1,b=2)"),
            Field::Long(0),
            text("slow start"),
            Field::Long(100),
            Field::Double(12.5),
        ];
        assert_eq!(values(&rows[0]), first);
        let last = [text("halfback(a=1,b=2)"), Field::Long(1), text("jump"), Field::Long(7), Field::Null];
        assert_eq!(values(&rows[3]), last);
        let bytes = fs::read(&path).expect("written");
        assert!(
            bytes == fs::read(write(&folder, "again.parquet")).expect("written"),
            "the same bytes each time"
        );
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing_and_the_old_one_stays() {
        let folder = scratch("dropped");
        let path = write(&folder, "flows.csv");
        let before = fs::read(&path).expect("written");
        let file: RowFile = path.to_string_lossy().parse().expect("a known ending");
        let mut writer = file.create(columns()).expect("a folder");
        let error =
            writer.append(&["too few".to_owned()], &folder.join("one")).expect_err("four fields of five");
        assert!(error.to_string().contains("found a row of 4 fields, expected the 5"), "{error}");
        drop(writer);
        assert_eq!(fs::read(&path).expect("it is there"), before);
        assert!(!folder.join(".flows.csv.partial").exists());
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn the_suffix_of_a_file_selects_its_format_and_another_is_refused() {
        assert!("a/flows.CSV".parse::<RowFile>().is_ok());
        assert!(
            "flows.txt"
                .parse::<RowFile>()
                .is_err_and(|error| error.contains("expected a name that ends in .csv"))
        );
        assert!("flows".parse::<RowFile>().is_err());
        let parquet = "flows.parquet".parse::<RowFile>();
        if cfg!(feature = "parquet") {
            assert!(parquet.is_ok());
        } else {
            assert!(parquet.is_err_and(|error| error.contains("--features parquet")));
        }
        let nowhere: RowFile = "/nowhere/at/all/flows.csv".parse().expect("a known ending");
        assert!(
            nowhere
                .create(columns())
                .is_err_and(|error| error.to_string().contains("/nowhere/at/all/flows.csv"))
        );
    }
}

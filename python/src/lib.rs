//! The simulator for Python: the commands of `headstart` as functions, with Arrow tables as their
//! results.
//!
//! A call runs on a thread of its own without the interpreter's lock. The calling thread waits for
//! it, reports its progress ten times a second, and stops it when a signal's handler raises.

mod scheme;

use std::ffi::{CStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Metadata, Schema};
use headstart::command::call::{self, Answer};
use headstart_report::rows::{self, Kind, TypedFields};
use headstart_startup::catalogue::Entry;
use headstart_startup::conformance;
use headstart_study::progress::{ProgressState, StoppedRun};
use headstart_study::schemes::with_foreign;
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use crate::scheme::{Call, PythonSchemes, is_within_scheme};

/// Time between two reports of progress, and until a signal is seen.
const INTERVAL: Duration = Duration::from_millis(100);
/// Names of capsules by the Arrow PyCapsule interface.
const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// A table of results that pyarrow, pandas, polars and DuckDB read without a copy.
#[pyclass(frozen, module = "headstart")]
struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The table as a stream of one batch, for the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer that cannot convert return its own schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// The schema, for the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Metadata of the schema: `headstart`, `command` and `conditions`.
    #[getter]
    fn metadata(&self) -> std::collections::BTreeMap<String, String> {
        self.batch.schema().metadata().clone().into_iter().collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The column at this place: its values, None where nothing was measured.
    fn column<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let array = self.batch.columns().get(at).ok_or_else(|| failed("no such column"))?;
        let any = array.as_any();
        if let Some(counts) = any.downcast_ref::<UInt64Array>() {
            return counts.iter().collect::<Vec<_>>().into_bound_py_any(py);
        }
        if let Some(numbers) = any.downcast_ref::<Float64Array>() {
            return numbers.iter().collect::<Vec<_>>().into_bound_py_any(py);
        }
        let texts = any.downcast_ref::<StringArray>().ok_or_else(|| failed("a column of another kind"))?;
        texts.iter().collect::<Vec<_>>().into_bound_py_any(py)
    }

    /// The kinds of the columns: `Utf8`, `UInt64` or `Float64`.
    #[getter]
    fn kinds(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// For pickle: the columns and metadata, from which `table_of` makes the table again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let schema = self.batch.schema();
        let columns = schema.fields().iter().zip(self.batch.columns());
        let columns = columns.map(|(field, array)| Ok((field.name().clone(), texts(array)?)));
        let columns = columns.collect::<Result<_, String>>().map_err(failed)?;
        Ok((py.import("headstart._native")?.getattr("table_of")?, (columns, self.metadata())))
    }
}

/// A table for pickle: names of columns with their kinds and fields as text, and the metadata.
type Parts = (Vec<Column>, std::collections::BTreeMap<String, String>);
type Column = (String, (String, Vec<String>));

/// The kind of a column, and its fields as text; a null is empty.
fn texts(array: &ArrayRef) -> Result<(String, Vec<String>), String> {
    let kind = array.data_type();
    let any = array.as_any();
    let fields: Vec<String> = if let Some(texts) = any.downcast_ref::<StringArray>() {
        texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
    } else if let Some(counts) = any.downcast_ref::<UInt64Array>() {
        counts.iter().map(|count| count.map_or_else(String::new, |count| count.to_string())).collect()
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        numbers.iter().map(|number| number.map_or_else(String::new, |number| number.to_string())).collect()
    } else {
        return Err(format!("found a column of {kind}, expected text, counts or numbers"));
    };
    Ok((kind.to_string(), fields))
}

/// The table of these parts, as pickle has them.
#[pyfunction]
fn table_of(columns: Vec<Column>, metadata: std::collections::BTreeMap<String, String>) -> PyResult<Table> {
    let kind = |name: &str| match name {
        "Utf8" => Ok(Kind::Text),
        "UInt64" => Ok(Kind::Count),
        "Float64" => Ok(Kind::Number),
        other => Err(format!("found a column of {other}, expected Utf8, UInt64 or Float64")),
    };
    let columns =
        columns.into_iter().map(|(name, (of, fields))| Ok((name, array(kind(&of)?, fields.into_iter())?)));
    let columns: Result<Vec<_>, String> = columns.collect();
    batch(columns.map_err(refused_parts)?, Metadata::from_iter(metadata)).map_err(refused_parts)
}

fn refused_parts(error: String) -> PyErr {
    PyValueError::new_err(error)
}

/// A table of named columns.
fn batch(columns: Vec<(String, (DataType, ArrayRef))>, metadata: Metadata) -> Result<Table, String> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.into_iter().map(|(name, (kind, array))| (Field::new(name, kind, true), array)).unzip();
    let schema = Schema::new_with_metadata(fields, metadata);
    let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(|error| error.to_string())?;
    Ok(Table { batch })
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A column of text, by the kind of its fields; an empty field is null.
fn array(kind: Kind, fields: impl Iterator<Item = String>) -> Result<(DataType, ArrayRef), String> {
    fn parsed<T: std::str::FromStr>(field: String) -> Result<Option<T>, String> {
        let number = |text: &String| text.parse().map_err(|_| format!("found `{text}`, expected a number"));
        Some(field).filter(|text| !text.is_empty()).as_ref().map(number).transpose()
    }
    Ok(match kind {
        Kind::Text => {
            let texts: StringArray = fields.map(|text| Some(text).filter(|text| !text.is_empty())).collect();
            (DataType::Utf8, Arc::new(texts))
        }
        Kind::Count => (DataType::UInt64, Arc::new(fields.map(parsed).collect::<Result<UInt64Array, _>>()?)),
        Kind::Number => {
            (DataType::Float64, Arc::new(fields.map(parsed).collect::<Result<Float64Array, _>>()?))
        }
    })
}

fn table(rows: rows::Table, answer: &Answer) -> Result<Table, String> {
    let rows::Table { columns, rows } = rows;
    let columns = columns.iter().enumerate().map(|(at, column)| {
        let array = array(column.kind, rows.iter().map(|row| row[at].clone()))
            .map_err(|error| format!("column {}: {error}", column.name))?;
        Ok((column.name.clone(), array))
    });
    batch(columns.collect::<Result<_, String>>()?, metadata(answer))
}

fn metadata(answer: &Answer) -> Metadata {
    let metadata = [
        ("headstart", headstart_compare::VERSION),
        ("command", &answer.command),
        ("conditions", &answer.conditions),
    ];
    Metadata::from_iter(metadata.map(|(key, text)| (key.to_owned(), text.to_owned())))
}

fn typed(fields: TypedFields) -> (DataType, ArrayRef) {
    match fields {
        TypedFields::Text(texts, places) => {
            let texts: Vec<Option<String>> =
                texts.into_iter().map(|text| Some(text).filter(|text| !text.is_empty())).collect();
            let fields = places.into_iter().map(|place| texts[place as usize].as_deref());
            (DataType::Utf8, Arc::new(fields.collect::<StringArray>()))
        }
        TypedFields::Count(values) => {
            let known = values.into_iter().map(|value| Some(value).filter(|value| *value != u64::MAX));
            (DataType::UInt64, Arc::new(known.collect::<UInt64Array>()))
        }
        TypedFields::Number(values) => {
            let known = values.into_iter().map(|value| Some(value).filter(|value| !value.is_nan()));
            (DataType::Float64, Arc::new(known.collect::<Float64Array>()))
        }
    }
}

/// Tables by name, the command line, the document of `--format json`, and notes.
type Results = (Vec<(String, Table)>, String, Option<String>, Vec<String>);

fn results(mut answer: Answer) -> Result<Results, String> {
    let tables = std::mem::take(&mut answer.tables);
    let tables = tables.into_iter().map(|(name, rows)| Ok((name, table(rows, &answer)?)));
    let mut tables = tables.collect::<Result<Vec<_>, String>>()?;
    if let Some(rows) = answer.flows.take() {
        let columns = rows.columns.into_iter().map(|(name, fields)| (name, typed(fields)));
        tables.push(("flows".to_owned(), batch(columns.collect(), metadata(&answer))?));
    }
    Ok((tables, answer.command, answer.json, answer.notes))
}

/// A folder for the results of one call while it goes on.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("headstart-python-{}-{number}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is there if the options were refused.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Does work on a thread of its own. `report` is called with title, finished runs, all runs and the
/// share of the work that is done; the work finds the schemes by their names.
fn work<R: Send + 'static>(
    py: Python<'_>,
    report: Option<&Py<PyAny>>,
    classes: &[Bound<'_, PyType>],
    work: impl FnOnce(&[&'static Entry]) -> R + Send + 'static,
) -> PyResult<R> {
    if is_within_scheme() {
        return Err(failed("found a call of headstart within a scheme, expected one outside of it"));
    }
    let call = Arc::new(Call::default());
    let monitor = &call.monitor;
    let schemes = PythonSchemes::new(classes, &call)?;
    let entries = schemes.entries();
    let monitored = Arc::clone(monitor);
    let (ended, mut wait) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _ended = ended;
        let run = || monitored.run(|| with_foreign(entries.clone(), || work(&entries)));
        // Python keeps the thread's state between two calls of a scheme.
        if entries.is_empty() { run() } else { Python::attach(|py| py.detach(run)) }
    });
    let mut last: Option<ProgressState> = None;
    let mut raised = None;
    let mut goes_on = || {
        let wait = &mut wait;
        py.detach(move || wait.recv_timeout(INTERVAL)) == Err(RecvTimeoutError::Timeout)
    };
    while raised.is_none() && goes_on() {
        let mut tell = || -> PyResult<()> {
            py.check_signals()?;
            let state = monitor.state();
            if let (Some(report), Some(ProgressState { title, finished, runs, share })) = (&report, &state)
                && state != last
            {
                report.call1(py, (title, finished, runs, share))?;
                last.clone_from(&state);
            }
            Ok(())
        };
        raised = tell().err();
    }
    if raised.is_some() {
        call.stop();
        // A run ends by itself soon, unless it is in a method that does not return.
        while goes_on() {
            call.interrupt(py)?;
        }
    }
    let outcome = py.detach(|| thread.join());
    if let Some(error) = raised.or_else(|| call.raised()) {
        return Err(error);
    }
    outcome.map_err(|panic| {
        if panic.is::<StoppedRun>() {
            return failed("stopped");
        }
        let text = panic.downcast_ref::<String>().map(String::as_str);
        failed(text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("the simulator is wrong"))
    })
}

/// The command's message; an option at its beginning is the argument of that name here.
fn refused(error: &anyhow::Error) -> PyErr {
    let message = call::message(error);
    let is_option = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let named = message.strip_prefix("--").and_then(|rest| rest.split_once(':'));
    let named = named.filter(|(name, _)| is_option(name));
    PyValueError::new_err(match named {
        Some((name, rest)) => format!("{}:{rest}", name.replace('-', "_")),
        None => message,
    })
}

/// The words of a command that takes text alone.
fn as_text(words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let text = |word: &OsString| {
        let text = word.to_str().map(str::to_owned);
        text.ok_or_else(|| anyhow::anyhow!("found {word:?}, which is not UTF-8, expected text"))
    };
    words.iter().map(text).collect()
}

/// Runs a command with options as words, in which the names of classes are schemes as well. A sweep
/// takes the rows of `blocks` in place of runs. With `keep_flows` a race has the table `flows`.
#[pyfunction]
#[pyo3(signature = (name, options, report=None, classes=vec![], blocks=vec![], keep_flows=false))]
fn run(
    py: Python<'_>,
    name: &str,
    options: Vec<OsString>,
    report: Option<Py<PyAny>>,
    classes: Vec<Bound<'_, PyType>>,
    blocks: Vec<Vec<u8>>,
    keep_flows: bool,
) -> PyResult<Results> {
    type Run = fn(&[OsString], &Path, &[Vec<u8>]) -> anyhow::Result<Answer>;
    let command: Run = match name {
        "race" if keep_flows => |options, folder, _| call::race(options, folder, true),
        "race" => |options, folder, _| call::race(options, folder, false),
        "sweep" => |options, folder, blocks| call::sweep(&as_text(options)?, folder, blocks),
        "trace" => |options, _, _| call::trace(options),
        "reproduce" => |options, folder, _| call::reproduce(options, folder),
        "assess" => |options, folder, _| call::assess(options, folder),
        "schemes" => |options, _, _| call::schemes(&as_text(options)?),
        "paths" => |options, _, _| call::paths(&as_text(options)?),
        "options" => |options, _, _| Ok(call::options(&as_text(options)?)),
        other => {
            let error = format!(
                "found `{other}`, expected race, sweep, trace, reproduce, assess, schemes, paths or options"
            );
            return Err(PyValueError::new_err(error));
        }
    };
    let answer = work(py, report.as_ref(), &classes, move |_| {
        let scratch = Scratch::new();
        command(&options, &scratch.0, &blocks)
    })?;
    results(answer.map_err(|error| refused(&error))?).map_err(failed)
}

/// A sweep that is divided into blocks of points.
#[pyclass(frozen, module = "headstart")]
struct Blocks {
    blocks: Arc<call::Blocks>,
    command: String,
}

/// The tables of a block, as Parquet or as `run` takes them, and the keys of some of its points.
/// Behind them are the runs and the seconds of processor time that were expected of it.
type BlockRows = ([Vec<u8>; 2], call::Keys, f64, f64);

#[pymethods]
impl Blocks {
    /// Divides the sweep with options as words.
    #[new]
    fn new(py: Python<'_>, options: Vec<String>, classes: Vec<Bound<'_, PyType>>) -> PyResult<Self> {
        let divided = work(py, None, &classes, move |_| call::blocks(&options))?;
        let (blocks, command) = divided.map_err(|error| refused(&error))?;
        Ok(Self { blocks: Arc::new(blocks), command })
    }

    /// Options for `block`, those of a plan included.
    #[getter]
    fn options(&self) -> Vec<String> {
        self.blocks.words().to_vec()
    }

    /// Expected runs and seconds of processor time of all.
    #[getter]
    fn cost(&self) -> (f64, f64) {
        (self.blocks.estimate.runs, self.blocks.estimate.seconds)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.blocks.count()).unwrap_or(usize::MAX)
    }

    /// Numbers of the first point of a block and of the one behind its last.
    fn numbers(&self, block: u64) -> (u64, u64) {
        let numbers = self.blocks.numbers(block);
        (numbers.start, numbers.end)
    }

    /// Checks the keys that `block` returned.
    fn check(&self, keys: call::Keys) -> PyResult<()> {
        self.blocks.check(&keys).map_err(|error| refused(&error))
    }

    /// The folder of their files, held until it is dropped.
    fn folder(&self, path: PathBuf) -> PyResult<BlockFolder> {
        let command = format!("{} --blocks --out={}", self.command, path.display());
        let folder = call::BlockFolder::open(&path, &self.blocks, &command);
        Ok(BlockFolder { folder: Arc::new(folder.map_err(|error| refused(&error))?) })
    }

    /// Runs what is left of all blocks and writes it to the folder.
    #[pyo3(signature = (folder, report=None, classes=vec![]))]
    fn run_left(
        &self,
        py: Python<'_>,
        folder: &BlockFolder,
        report: Option<Py<PyAny>>,
        classes: Vec<Bound<'_, PyType>>,
    ) -> PyResult<()> {
        let (blocks, folder) = (Arc::clone(&self.blocks), Arc::clone(&folder.folder));
        let done = work(py, report.as_ref(), &classes, move |_| folder.run(&blocks, |_| ()))?;
        done.map_err(|error| refused(&error))
    }
}

/// Runs the points of a `Blocks` from `first` to the one before `end`, by one thread unless its
/// options say how many.
#[pyfunction]
fn block(
    py: Python<'_>,
    options: Vec<String>,
    first: u64,
    end: u64,
    classes: Vec<Bound<'_, PyType>>,
    parquet: bool,
) -> PyResult<BlockRows> {
    let rows = work(py, None, &classes, move |_| -> anyhow::Result<BlockRows> {
        let scratch = Scratch::new();
        let block = call::block(&options, first..end, &scratch.0)?;
        let tables = if parquet { block.parquet()? } else { [block.rows()?, vec![]] };
        Ok((tables, block.keys, block.estimate.runs, block.estimate.seconds))
    })?;
    rows.map_err(|error| refused(&error))
}

/// A folder of blocks.
#[pyclass(frozen, weakref, module = "headstart")]
struct BlockFolder {
    folder: Arc<call::BlockFolder>,
}

#[pymethods]
impl BlockFolder {
    /// Leaves the folder to the process that this one was forked from.
    fn forget(&self) {
        self.folder.forget();
    }

    /// True if the block is finished.
    fn has(&self, number: u64) -> bool {
        self.folder.has(number)
    }

    /// Writes the files of a block.
    fn write(&self, py: Python<'_>, number: u64, points: &[u8], seeds: &[u8]) -> PyResult<()> {
        py.detach(|| self.folder.write(number, [points, seeds])).map_err(|error| refused(&error))
    }
}

/// Runs the case that this seed draws with a class as its scheme. Returns the first property that
/// does not hold, and the case.
#[pyfunction]
fn check_case(py: Python<'_>, class: Bound<'_, PyType>, seed: u64) -> PyResult<Option<(String, String)>> {
    work(py, None, &[class], move |entries| {
        let case = headstart_sim::properties::draw::case_of(*entries[0], seed);
        let found = headstart_sim::properties::check(&case).err();
        found.map(|property| {
            let text = property.to_string();
            (text.strip_prefix("Case failed: ").unwrap_or(&text).to_owned(), format!("{case:?}"))
        })
    })
}

/// Runs a flow of a class alone on each of two paths. Returns the first bound that does not hold.
#[pyfunction]
fn check_bounds(py: Python<'_>, class: Bound<'_, PyType>) -> PyResult<Option<String>> {
    work(py, None, &[class], move |entries| headstart_sim::properties::bounds::check(*entries[0]).err())
}

/// Plays conformance vectors on a class as the scheme. Returns the number of answers compared, or
/// the line with another answer.
#[pyfunction]
fn replay(py: Python<'_>, class: Bound<'_, PyType>, vectors: String) -> PyResult<(usize, Option<String>)> {
    let played = work(py, None, &[class], move |entries| {
        let mut played = Ok(0);
        entries[0].scheme().during_run(&mut || {
            played = conformance::replay(|| entries[0].scheme(), &vectors);
        });
        played
    })?;
    match played {
        Ok(compared) => Ok((compared, None)),
        Err(error) if error.is_answer => Ok((0, Some(error.to_string()))),
        Err(error) => Err(PyValueError::new_err(format!("vectors: {error}"))),
    }
}

/// Runs the command `headstart` with `words`, the program's first, and this library's file; returns
/// the exit code.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>, library: PathBuf) -> u8 {
    headstart::command::host(words, library);
    py.detach(headstart::command::main)
}

/// Takes this library's file for the program, by which results of another build are told apart.
#[pyfunction]
fn library(path: PathBuf) {
    headstart_report::jobs::host(path);
}

/// The simulator: all but the interface is in the package's Python files.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", headstart_compare::VERSION)?;
    module.add_class::<Table>()?;
    module.add_class::<Blocks>()?;
    module.add_class::<BlockFolder>()?;
    module.add_class::<scheme::Prior>()?;
    module.add_class::<scheme::Record>()?;
    module.add_class::<scheme::Ack>()?;
    module.add_class::<scheme::Congestion>()?;
    module.add_class::<scheme::Timeout>()?;
    module.add_class::<scheme::Allowance>()?;
    module.add_class::<scheme::FlightPlan>()?;
    module.add_class::<scheme::HandOver>()?;
    module.add_function(wrap_pyfunction!(block, module)?)?;
    module.add_function(wrap_pyfunction!(check_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(check_case, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(library, module)?)?;
    module.add_function(wrap_pyfunction!(replay, module)?)?;
    module.add_function(wrap_pyfunction!(table_of, module)?)?;
    module.add_function(wrap_pyfunction!(scheme::told, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}

//! Schemes that are classes of Python: each connection has an object, whose methods are called with
//! the interpreter's lock.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use headstart_host::locked;
use headstart_startup::catalogue::{About, Entry, Needs};
use headstart_startup::history::FlightOutcome;
use headstart_startup::scheme::foreign::{Event, ForeignScheme, Response};
use headstart_startup::{Signal, allowance, event, history, prior};
use headstart_study::progress::{RunMonitor, StoppedRun};
use headstart_units::{Bytes, Rate};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// Limit on windows in bytes.
const MOST_BYTES: u64 = 1 << 40;
/// Limit on paces in bytes per second.
const MOST_PACE: f64 = 1e15;

/// A class that holds a decision: its getters, its text, and methods of its own.
macro_rules! getters {
    ($class:ident of $inner:ty, $event:ident: $($(#[doc = $about:literal])+ $name:ident: $type:ty = $value:expr;)+ $({ $($own:tt)* })?) => {
        #[pymethods]
        impl $class {
            $($($own)*)?

            $(
                $(#[doc = $about])+
                #[getter]
                fn $name(&self) -> $type {
                    let $event: &$inner = &self.0;
                    $value
                }
            )+

            fn __repr__(&self) -> String {
                let fields = [$(format!(concat!(stringify!($name), "={:?}"), self.$name())),+];
                format!(concat!(stringify!($class), "({})"), fields.join(", "))
            }
        }
    };
}

/// A class of what a scheme is told: its fields, its text, and pickling.
macro_rules! told {
    ($(#[doc = $summary:literal])+ $class:ident of $inner:ty, $event:ident: $($(#[doc = $about:literal])+ $name:ident: $type:ty = $value:expr;)+) => {
        $(#[doc = $summary])+
        #[pyclass(frozen, get_all, from_py_object, module = "headstart")]
        #[derive(Clone, Debug)]
        pub struct $class {
            $($(#[doc = $about])+ pub $name: $type,)+
        }

        impl From<$inner> for $class {
            fn from($event: $inner) -> Self {
                Self { $($name: $value),+ }
            }
        }

        impl $class {
            fn of_fields(fields: &Bound<'_, PyTuple>) -> PyResult<Self> {
                let names = [$(stringify!($name)),+];
                if fields.len() != names.len() {
                    return Err(of_another_version(stringify!($class), &format!(
                        "{} fields, expected {}", fields.len(), names.len()
                    )));
                }
                let mut fields = fields.iter_borrowed();
                let mut next = || fields.next().expect("as many as names");
                Ok(Self { $($name: {
                    let field = next();
                    field.extract().map_err(|_| of_another_version(stringify!($class), &format!(
                        "{field:?} as {}", stringify!($name)
                    )))?
                }),+ })
            }
        }

        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                let fields = [$(format!(concat!(stringify!($name), "={:?}"), self.$name)),+];
                format!(concat!(stringify!($class), "({})"), fields.join(", "))
            }

            /// For pickle: the fields, from which `told` makes the object again.
            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, Bound<'py, PyTuple>))> {
                let fields = PyTuple::new(py, [$(self.$name.clone().into_bound_py_any(py)?),+])?;
                Ok((py.import("headstart._native")?.getattr("told")?, (stringify!($class), fields)))
            }
        }
    };
}

/// The error of fields that this version does not have.
fn of_another_version(class: &str, found: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{class}: found {found}: the pickle is of another version than headstart {}",
        headstart_compare::VERSION
    ))
}

/// The object of these fields, as pickle has them.
#[pyfunction]
pub fn told<'py>(class: &str, fields: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = fields.py();
    match class {
        "Prior" => Prior::of_fields(fields)?.into_bound_py_any(py),
        "Record" => Record::of_fields(fields)?.into_bound_py_any(py),
        "Ack" => Ack::of_fields(fields)?.into_bound_py_any(py),
        "Congestion" => Congestion::of_fields(fields)?.into_bound_py_any(py),
        "Timeout" => Timeout::of_fields(fields)?.into_bound_py_any(py),
        _ => Err(PyValueError::new_err(format!("found `{class}`, expected an event or a record"))),
    }
}

told! {
    /// Everything known when the connection is established.
    Prior of prior::Prior, prior:
    /// Time of establishment, in seconds.
    now_s: f64 = prior.now.as_secs_f64();
    /// Payload bytes of a full packet.
    mss_bytes: u64 = prior.mss.get();
    /// Round-trip time of the handshake, in seconds.
    handshake_rtt_s: f64 = prior.handshake_rtt.as_secs_f64();
    /// A packet of the handshake was sent again, so that its RTT may be ambiguous.
    handshake_retransmitted: bool = prior.handshake_retransmitted;
    /// Bytes that the application has ready or announces; None if unknown.
    flow_size_bytes: Option<u64> = prior.flow_size.map(Bytes::get);
    /// The window that the receiver advertised, in bytes.
    receive_window_bytes: u64 = prior.receive_window.get();
    /// The most that can usefully be sent at once, in bytes.
    sendable_bytes: u64 = prior.sendable().get();
    /// The path record of earlier connections to this peer; None if there is none.
    history: Option<Record> = prior.history.map(Record::from);
    /// The peer's hint of its downlink's rate, in bytes per second; None if it sent none.
    hint_bytes_per_s: Option<u64> = prior.hint.map(|hint| hint.bandwidth.as_bytes_per_sec());
    /// The rate that all routers granted, in bytes per second; None if there is none.
    granted_bytes_per_s: Option<u64> = prior.granted.map(Rate::as_bytes_per_sec);
}

told! {
    /// A path record of an earlier connection.
    Record of history::SharedRecord, shared:
    /// Time of recording, in seconds.
    saved_at_s: f64 = shared.record.saved_at.as_secs_f64();
    /// The maximum delivery rate, in bytes per second.
    bottleneck_bytes_per_s: u64 = shared.record.btl_bw.as_bytes_per_sec();
    /// The minimum RTT, in seconds.
    min_rtt_s: f64 = shared.record.rt_prop.as_secs_f64();
    /// The congestion window at the end, in bytes.
    window_bytes: u64 = shared.record.window.get();
    /// The slow start threshold at the end, in bytes; None if none was set.
    ssthresh_bytes: Option<u64> =
        Some(shared.record.ssthresh).filter(|bytes| *bytes != Bytes::MAX).map(Bytes::get);
    /// A packet of that connection's first flight was lost.
    is_lossy: bool = shared.record.outcome == FlightOutcome::Lossy;
    /// The part of the handshake's RTT that is not the path's, in seconds; zero if not estimated.
    handshake_excess_s: f64 = shared.record.handshake_excess.as_secs_f64();
    /// Other open connections that began from the record.
    live: u32 = shared.live;
}

told! {
    /// Data was newly acknowledged.
    Ack of event::Ack, ack:
    /// Time of arrival, in seconds.
    now_s: f64 = ack.now.as_secs_f64();
    /// Sending time of the newest transmission that it covers, in seconds.
    newest_sent_at_s: f64 = ack.newest_sent_at.as_secs_f64();
    /// Bytes acknowledged for the first time.
    newly_acked_bytes: u64 = ack.newly_acked.get();
    /// Bytes of these that were in the first flight and arrived by their original transmission.
    first_flight_acked_bytes: u64 = ack.first_flight_acked.get();
    /// The RTT of the newest packet covered, in seconds; None if ambiguous.
    rtt_sample_s: Option<f64> = ack.rtt_sample.map(|rtt| rtt.as_secs_f64());
    /// The smoothed RTT, in seconds.
    smoothed_rtt_s: f64 = ack.rtt.smoothed.as_secs_f64();
    /// The mean deviation of the RTT, in seconds.
    rtt_variation_s: f64 = ack.rtt.variation.as_secs_f64();
    /// The minimum RTT, in seconds.
    min_rtt_s: f64 = ack.rtt.min.as_secs_f64();
    /// Bytes in flight after it.
    in_flight_bytes: u64 = ack.in_flight.get();
    /// Bytes delivered since the connection began.
    delivered_bytes: u64 = ack.delivered.get();
    /// Delivery rate over about the last round trip, in bytes per second; None without a sample.
    rate_bytes_per_s: Option<u64> = ack.rate.rate().map(Rate::as_bytes_per_sec);
    /// The application limited that rate: the path may carry more.
    rate_is_app_limited: bool = ack.rate.is_app_limited;
    /// The window was the limit when the data was sent: it may grow.
    is_window_limited: bool = ack.is_window_limited;
    /// Loss recovery goes on.
    in_recovery: bool = ack.in_recovery;
    /// Bytes that arrived with a CE mark, where the receiver counts them.
    marked_bytes: u64 = ack.marked.get();
}

told! {
    /// Data was declared lost, or CE-marked.
    Congestion of event::Congestion, signal:
    /// Time of detection, in seconds.
    now_s: f64 = signal.now.as_secs_f64();
    /// Packets were lost; else one was CE-marked.
    is_loss: bool = signal.signal == Signal::Loss;
    /// The first of its round trip.
    opens_episode: bool = signal.opens_episode;
    /// Bytes newly declared lost; 0 for a mark.
    lost_bytes: u64 = signal.lost.get();
    /// Bytes of these that were in the first flight, original transmissions only.
    first_flight_lost_bytes: u64 = signal.first_flight_lost.get();
    /// Sending time of the newest packet declared lost, in seconds.
    newest_lost_sent_at_s: f64 = signal.newest_lost_sent_at.as_secs_f64();
    /// Bytes in flight before.
    prior_in_flight_bytes: u64 = signal.prior_in_flight.get();
    /// Bytes in flight now.
    in_flight_bytes: u64 = signal.in_flight.get();
    /// Bytes delivered since the connection began.
    delivered_bytes: u64 = signal.delivered.get();
    /// Bytes of the first flight delivered by their original transmissions.
    first_flight_delivered_bytes: u64 = signal.first_flight_delivered.get();
    /// The smoothed RTT, in seconds.
    smoothed_rtt_s: f64 = signal.rtt.smoothed.as_secs_f64();
    /// The minimum RTT, in seconds.
    min_rtt_s: f64 = signal.rtt.min.as_secs_f64();
}

told! {
    /// The retransmission timer expired.
    Timeout of event::Timeout, timeout:
    /// Time of expiry, in seconds.
    now_s: f64 = timeout.now.as_secs_f64();
    /// Bytes in flight before.
    prior_in_flight_bytes: u64 = timeout.prior_in_flight.get();
    /// Bytes delivered since the connection began.
    delivered_bytes: u64 = timeout.delivered.get();
    /// Consecutive expiries, this one included.
    consecutive: u32 = timeout.consecutive;
}

/// The bytes of a field, at least one: a whole number of Python, of any size.
fn bytes(name: &str, count: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    bytes_from(1, name, count)
}

fn bytes_from(least: u64, name: &str, count: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let index = count.py().import("operator")?.getattr("index")?.call1((count,)).map_err(|_| {
        let found = shown(count);
        PyTypeError::new_err(format!("{name}: found {found}, expected a whole number of bytes"))
    })?;
    let bytes =
        index.extract().ok().filter(|bytes| (least..=MOST_BYTES).contains(bytes)).ok_or_else(|| {
            PyValueError::new_err(format!("{name}: found {}, expected {least} to {MOST_BYTES}", shown(count)))
        })?;
    Ok(Bytes::new(bytes))
}

/// A value of Python as a message has it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| value.get_type().to_string(), |text| text.to_string())
}

fn pace(per_second: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Rate>> {
    let number = |pace: &Bound<'_, PyAny>| {
        pace.extract::<f64>().map_err(|_| {
            PyTypeError::new_err(format!("pace_bytes_per_s: found {}, expected a number", shown(pace)))
        })
    };
    match per_second.map(number).transpose()? {
        Some(pace) if !(1.0..=MOST_PACE).contains(&pace) => {
            Err(PyValueError::new_err(format!("pace_bytes_per_s: found {pace}, expected 1 to {MOST_PACE:e}")))
        }
        pace => Ok(pace.map(|pace| Rate::from_bytes_per_sec(pace as u64))),
    }
}

/// Limits on sending: window and pace.
#[pyclass(frozen, module = "headstart")]
pub struct Allowance(allowance::Allowance);

getters! { Allowance of allowance::Allowance, allowance:
    /// Limit on bytes in flight.
    window_bytes: u64 = allowance.window.get();
    /// Limit on the sending rate, in bytes per second; None: the transport's own pacing.
    pace_bytes_per_s: Option<u64> = allowance.pace.map(Rate::as_bytes_per_sec);
    {
        #[new]
        #[pyo3(signature = (window_bytes, pace_bytes_per_s=None))]
        fn new(window_bytes: &Bound<'_, PyAny>, pace_bytes_per_s: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
            let window = bytes("window_bytes", window_bytes)?;
            Ok(Self(allowance::Allowance { window, pace: pace(pace_bytes_per_s)? }))
        }
    }
}

/// The first flight: a burst, the rest at a pace.
#[pyclass(frozen, module = "headstart")]
pub struct FlightPlan(allowance::FlightPlan);

getters! { FlightPlan of allowance::FlightPlan, plan:
    /// Bytes of the first flight, the burst included, and the window until an event changes it.
    flight_bytes: u64 = plan.flight.get();
    /// Bytes that may leave back to back.
    burst_bytes: u64 = plan.burst.get();
    /// The pace of the rest, in bytes per second; None: the transport's own pacing.
    pace_bytes_per_s: Option<u64> = plan.allowance.pace.map(Rate::as_bytes_per_sec);
    {
        #[new]
        #[pyo3(signature = (flight_bytes, *, burst_bytes=None, pace_bytes_per_s=None))]
        fn new(
            flight_bytes: &Bound<'_, PyAny>,
            burst_bytes: Option<&Bound<'_, PyAny>>,
            pace_bytes_per_s: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let flight = bytes("flight_bytes", flight_bytes)?;
            let burst = burst_bytes.map_or(Ok(flight), |burst| bytes_from(0, "burst_bytes", burst))?;
            if burst > flight {
                return Err(PyValueError::new_err(format!(
                    "burst_bytes: found {}, expected at most the flight of {}", burst.get(), flight.get()
                )));
            }
            let allowance = allowance::Allowance { window: flight, pace: pace(pace_bytes_per_s)? };
            Ok(Self(allowance::FlightPlan { burst, flight, allowance }))
        }
    }
}

/// State that the base controller inherits.
#[pyclass(frozen, module = "headstart")]
pub struct HandOver(allowance::HandOver);

getters! { HandOver of allowance::HandOver, how:
    /// The congestion window to continue from, in bytes.
    window_bytes: u64 = how.window.get();
    /// Slow start up to here, in bytes; None: no limit is known.
    ssthresh_bytes: Option<u64> = Some(how.ssthresh).filter(|bytes| *bytes != Bytes::MAX).map(Bytes::get);
    /// The base controller still has to answer the congestion.
    cut: bool = how.cut;
    {
        /// Congestion ended the start: the base controller makes its usual cut of the window.
        #[staticmethod]
        fn to_be_cut(window_bytes: &Bound<'_, PyAny>) -> PyResult<Self> {
            Ok(Self(allowance::HandOver::to_be_cut(bytes("window_bytes", window_bytes)?)))
        }

        /// Slow start continues from the window, without a threshold.
        #[staticmethod]
        fn growing(window_bytes: &Bound<'_, PyAny>) -> PyResult<Self> {
            Ok(Self(allowance::HandOver::growing(bytes("window_bytes", window_bytes)?)))
        }

        /// Congestion avoidance continues from exactly the window.
        #[staticmethod]
        fn avoiding(window_bytes: &Bound<'_, PyAny>) -> PyResult<Self> {
            Ok(Self(allowance::HandOver::avoiding(bytes("window_bytes", window_bytes)?)))
        }
    }
}

/// A call of the package, as its schemes see it.
#[derive(Default)]
pub struct Call {
    pub monitor: Arc<RunMonitor>,
    is_stopped: AtomicBool,
    /// The first exception of a scheme.
    raised: Mutex<Option<PyErr>>,
    /// Threads that have called Python, as it numbers them.
    threads: Mutex<BTreeSet<u64>>,
}

thread_local! {
    /// This thread's number in Python.
    static IDENT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// True on a thread that runs schemes of Python: a call of the package from there would wait for
/// itself.
pub fn is_within_scheme() -> bool {
    IDENT.get().is_some()
}

impl Call {
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.monitor.stop();
    }

    /// Has the methods that are running raise KeyboardInterrupt: they may never return.
    pub fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        let ctypes = py.import("ctypes")?;
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        let interrupt = py.get_type::<pyo3::exceptions::PyKeyboardInterrupt>();
        for ident in locked(&self.threads).iter() {
            let ident = ctypes.getattr("c_ulong")?.call1((*ident,))?;
            raise.call1((ident, ctypes.getattr("py_object")?.call1((&interrupt,))?))?;
        }
        Ok(())
    }

    /// The exception that ended the runs.
    pub fn raised(&self) -> Option<PyErr> {
        locked(&self.raised).take()
    }

    /// Notes the thread, so that it can be interrupted.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        let ident = match IDENT.get() {
            Some(ident) => ident,
            None => py.import("threading")?.call_method0("get_ident")?.extract()?,
        };
        IDENT.set(Some(ident));
        locked(&self.threads).insert(ident);
        Ok(())
    }

    /// Ends all runs.
    fn abort(&self, error: PyErr) -> ! {
        let mut raised = locked(&self.raised);
        if !self.is_stopped.load(Ordering::Relaxed) {
            raised.get_or_insert(error);
        }
        drop(raised);
        self.stop();
        resume_unwind(Box::new(StoppedRun));
    }
}

/// The object of one connection, by its methods.
struct Connection {
    mss: Bytes,
    on_ack: Py<PyAny>,
    on_congestion: Py<PyAny>,
    on_timeout: Py<PyAny>,
    allowance: Py<PyAny>,
}

/// A class during a call.
struct Current {
    class: Py<PyType>,
    call: Arc<Call>,
    connections: Vec<Option<Arc<Connection>>>,
    free: Vec<usize>,
}

/// A class as a scheme. It lives on after its call, for another with the same row.
pub struct PythonScheme {
    about: &'static About,
    current: Mutex<Option<Current>>,
}

impl fmt::Debug for PythonScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about.name)
    }
}

/// Schemes whose calls have ended.
static UNUSED: Mutex<Vec<(&PythonScheme, &Entry)>> = Mutex::new(Vec::new());

/// The classes of a call as schemes; none keeps its class after that.
pub struct PythonSchemes(Vec<(&'static PythonScheme, &'static Entry)>);

impl PythonSchemes {
    /// Of classes derived from `headstart.Scheme`.
    pub fn new(classes: &[Bound<'_, PyType>], call: &Arc<Call>) -> PyResult<Self> {
        // Those that have been made are put back if a later one is refused.
        let mut all = Self(vec![]);
        for class in classes {
            let one = entry(class)?;
            if all.0.iter().any(|(_, other)| other.name == one.1.name) {
                return Err(PyValueError::new_err(format!(
                    "{}: found two schemes of this name, expected a `name` of its own in each",
                    one.1.name
                )));
            }
            let current = Current {
                class: class.clone().unbind(),
                call: Arc::clone(call),
                connections: vec![],
                free: vec![],
            };
            *locked(&one.0.current) = Some(current);
            all.0.push(one);
        }
        Ok(all)
    }

    pub fn entries(&self) -> Vec<&'static Entry> {
        self.0.iter().map(|(_, entry)| *entry).collect()
    }
}

impl Drop for PythonSchemes {
    fn drop(&mut self) {
        for one in self.0.drain(..) {
            // An object's own code may run as it is dropped: not with these locked.
            let ended = locked(&one.0.current).take();
            drop(ended);
            locked(&UNUSED).push(one);
        }
    }
}

fn entry(class: &Bound<'_, PyType>) -> PyResult<(&'static PythonScheme, &'static Entry)> {
    let name: String = class.getattr("name")?.extract()?;
    let needs: String = class.getattr("needs")?.extract()?;
    let kinds = [Needs::Nothing, Needs::FlowSize, Needs::History, Needs::Hint, Needs::Routers];
    let Some(needs) = kinds.into_iter().find(|kind| kind.as_str() == needs) else {
        return Err(PyValueError::new_err(format!(
            "{name}: needs: found {needs:?}, expected \"\", \"flow size\", \"history\", \"hint\" or \"routers\""
        )));
    };
    let mut unused = locked(&UNUSED);
    let is_same =
        |(scheme, _): &(&PythonScheme, &Entry)| scheme.about.name == name && scheme.about.needs == needs;
    if let Some(at) = unused.iter().position(is_same) {
        return Ok(unused.swap_remove(at));
    }
    let about = About::new(Box::leak(name.into_boxed_str()), needs, "a class of Python");
    let about = &*Box::leak(Box::new(About { is_compared: false, ..about }));
    let scheme = &*Box::leak(Box::new(PythonScheme { about, current: Mutex::new(None) }));
    let entry = Entry::foreign(scheme).map_err(|error| PyValueError::new_err(format!("name: {error}")))?;
    Ok((scheme, &*Box::leak(Box::new(entry))))
}

/// The answer of a method, as the class that it has to be.
fn returned<'py, T: pyo3::PyClass>(
    answer: Bound<'py, PyAny>,
    scheme: &PythonScheme,
    method: &str,
    expected: &str,
) -> PyResult<Bound<'py, T>> {
    answer.cast_into::<T>().map_err(|error| {
        let found = shown(&error.into_inner());
        PyTypeError::new_err(format!("{}.{method}: found {found}, expected {expected}", scheme.about.name))
    })
}

impl PythonScheme {
    fn checked(&self, window: Bytes, mss: Bytes, method: &str) -> PyResult<Bytes> {
        if window < mss {
            return Err(PyValueError::new_err(format!(
                "{}.{method}: found a window of {} bytes, expected at least a segment of {}",
                self.about.name,
                window.get(),
                mss.get()
            )));
        }
        Ok(window)
    }

    /// The answer of a method; an exception gets a note of class and method, from Python 3.11 on.
    fn called<'py>(
        &self,
        method: &str,
        called: PyResult<Bound<'py, PyAny>>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        called.inspect_err(|error| {
            let _ = error.value(py).call_method1("add_note", (format!("in {}.{method}", self.about.name),));
        })
    }

    /// The call that is going on. There is one as long as there are runs.
    fn call(&self) -> Arc<Call> {
        locked(&self.current).as_ref().map(|current| Arc::clone(&current.call)).unwrap_or_default()
    }

    /// Calls Python, and ends all runs if it raises.
    fn python<R>(&self, work: impl FnOnce(Python<'_>, &Call) -> PyResult<R>) -> R {
        let call = self.call();
        if call.is_stopped.load(Ordering::Relaxed) {
            resume_unwind(Box::new(StoppedRun));
        }
        Python::attach(|py| work(py, &call)).unwrap_or_else(|error| call.abort(error))
    }
}

impl ForeignScheme for PythonScheme {
    fn about(&self) -> &'static About {
        self.about
    }

    fn establish(&self, prior: &prior::Prior) -> (u64, allowance::FlightPlan) {
        self.python(|py, call| {
            call.enter(py)?;
            let class = locked(&self.current).as_ref().map(|current| current.class.clone_ref(py));
            let class = class.ok_or_else(|| PyValueError::new_err("the call has ended"))?;
            let object = class.bind(py).call0()?;
            let plan = object.call_method1("establish", (Prior::from(*prior),));
            let plan = self.called("establish", plan, py)?;
            let plan = returned::<FlightPlan>(plan, self, "establish", "a FlightPlan")?.get().0;
            self.checked(plan.allowance.window, prior.mss, "establish")?;
            let method = |name| object.getattr(name).map(Bound::unbind);
            let connection = Arc::new(Connection {
                mss: prior.mss,
                on_ack: method("on_ack")?,
                on_congestion: method("on_congestion")?,
                on_timeout: method("on_timeout")?,
                allowance: method("allowance")?,
            });
            let mut current = locked(&self.current);
            let current = current.as_mut().ok_or_else(|| PyValueError::new_err("the call has ended"))?;
            let number = current.free.pop().unwrap_or(current.connections.len());
            current.connections.resize_with(current.connections.len().max(number + 1), || None);
            current.connections[number] = Some(connection);
            Ok((number as u64, plan))
        })
    }

    fn on_event(&self, connection: u64, event: &Event<'_>) -> Response {
        let found = locked(&self.current)
            .as_ref()
            .and_then(|current| current.connections.get(connection as usize)?.clone());
        self.python(|py, _| {
            let found = found.as_ref().ok_or_else(|| PyValueError::new_err("the call has ended"))?;
            let (answer, method) = match event {
                Event::Ack(ack) => (found.on_ack.bind(py).call1((Ack::from(**ack),)), "on_ack"),
                Event::Congestion(signal) => {
                    (found.on_congestion.bind(py).call1((Congestion::from(**signal),)), "on_congestion")
                }
                Event::Timeout(timeout) => {
                    (found.on_timeout.bind(py).call1((Timeout::from(**timeout),)), "on_timeout")
                }
            };
            let answer = self.called(method, answer, py)?;
            if answer.is_none() {
                let allowance = self.called("allowance", found.allowance.bind(py).call0(), py)?;
                let allowance = returned::<Allowance>(allowance, self, "allowance", "an Allowance")?.get().0;
                self.checked(allowance.window, found.mss, "allowance")?;
                return Ok(Response { next: allowance::Next::Stay, allowance });
            }
            let how = returned::<HandOver>(answer, self, method, "None or a HandOver")?.get().0;
            self.checked(how.window, found.mss, method)?;
            let allowance = allowance::Allowance::window(how.window);
            Ok(Response { next: allowance::Next::HandOver(how), allowance })
        })
    }

    fn during_run(&self, run: &mut (dyn FnMut() + Send)) {
        // Else Python would make a state of this thread anew for each event.
        Python::attach(|py| py.detach(run));
    }

    fn end(&self, connection: u64) {
        let ended = locked(&self.current).as_mut().and_then(|current| {
            current.free.push(connection as usize);
            current.connections.get_mut(connection as usize)?.take()
        });
        if let Some(ended) = ended {
            Python::attach(|_| drop(ended));
        }
    }
}

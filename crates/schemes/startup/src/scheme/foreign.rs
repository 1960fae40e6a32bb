//! A scheme of another language, which keeps the state of its connections itself.
//!
//! The catalogue does not list it: its entry is made of a [`ForeignScheme`]
//! ([`Entry::foreign`](crate::catalogue::Entry::foreign)). It is called for establishment,
//! acknowledgements, congestion and timeouts; window and pace change only by these. All else is as
//! the defaults of [`Startup`] say: no copies, no Quick-Start Request, no later flights.

use core::fmt::Debug;
use core::panic::RefUnwindSafe;

use headstart_units::Rate;

use super::{Requirements, Scheme, Startup};
use crate::about::About;
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::history::{Record, RecordUpdate, Revision};
use crate::prior::Prior;
use crate::quick_start::RequestInputs;
use crate::repair::Repair;

/// The scheme of all its connections.
pub trait ForeignScheme: Debug + RefUnwindSafe + Sync {
    /// The scheme's row, as of a scheme in the catalogue.
    fn about(&self) -> &'static About;

    /// A connection is established. Returns a number for its state and the first flight's plan.
    fn establish(&self, prior: &Prior) -> (u64, FlightPlan);

    /// An event of the connection with this number. A hand-over is followed by [`Self::end`].
    fn on_event(&self, connection: u64, event: &Event<'_>) -> Response;

    /// Data left this host. Returns the allowance that follows, if it is another one.
    fn on_sent(&self, connection: u64, sent: &Sent) -> Option<Allowance> {
        let _ = (connection, sent);
        None
    }

    /// The state of this connection is no longer needed.
    fn end(&self, connection: u64);

    /// Demands on the transport.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// True if transports must report what they send ([`Startup::on_sent`]).
    fn needs_sent_events(&self) -> bool {
        false
    }

    /// A transport calls this method of [`Startup`]. For tests of transports.
    fn called(&self, call: Call) {
        let _ = call;
    }

    /// Does a run, on this thread, whose connections make the calls above. The language may prepare
    /// the thread for them.
    fn during_run(&self, run: &mut (dyn FnMut() + Send)) {
        run();
    }
}

impl Scheme {
    /// Does a run with this scheme; one in another language is notified
    /// ([`ForeignScheme::during_run`]).
    pub fn during_run(&self, run: &mut (dyn FnMut() + Send)) {
        match self {
            Self::Foreign(foreign) => foreign.scheme.during_run(run),
            _ => run(),
        }
    }
}

/// A method of [`Startup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are those of the methods")]
pub enum Call {
    Establish,
    OnSent,
    OnAck,
    OnCongestion,
    OnTimeout,
    OnNewData,
    End,
    Allowance,
    IsSlowStart,
    Phase,
    Repair,
    NeedsSentEvents,
    CreditRevision,
    RecordUpdate,
    Requirements,
    Request,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Data was newly acknowledged.
    Ack(&'a Ack),
    /// Data was declared lost, or CE-marked.
    Congestion(&'a Congestion),
    /// The retransmission timer expired.
    Timeout(&'a Timeout),
}

/// The decision on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The controller in charge from now on.
    pub next: Next,
    /// Window and pace, of a scheme that stays in charge.
    pub allowance: Allowance,
}

/// The scheme of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    scheme: &'static dyn ForeignScheme,
    connection: Option<u64>,
    allowance: Allowance,
}

impl Foreign {
    /// [`Foreign`] with `scheme`, before [`Startup::establish`].
    #[must_use]
    pub fn new(scheme: &'static dyn ForeignScheme) -> Self {
        Self { scheme, connection: None, allowance: Allowance::window(headstart_units::Bytes::ZERO) }
    }

    /// The scheme's row.
    #[must_use]
    pub fn about(&self) -> &'static About {
        self.scheme.about()
    }

    fn on_event(&mut self, event: &Event<'_>) -> Next {
        let Some(connection) = self.connection else {
            return Next::HandOver(HandOver::to_be_cut(self.allowance.window));
        };
        let Response { next, allowance } = self.scheme.on_event(connection, event);
        match next {
            Next::Stay => self.allowance = allowance,
            Next::HandOver(_) => self.release(),
        }
        next
    }

    fn release(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.scheme.end(connection);
        }
    }
}

impl Startup for Foreign {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.scheme.called(Call::Establish);
        self.release();
        let (connection, plan) = self.scheme.establish(prior);
        self.connection = Some(connection);
        self.allowance = plan.allowance;
        plan
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.scheme.called(Call::OnSent);
        if let Some(allowance) = self.connection.and_then(|it| self.scheme.on_sent(it, sent)) {
            self.allowance = allowance;
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.scheme.called(Call::OnAck);
        self.on_event(&Event::Ack(ack))
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.scheme.called(Call::OnCongestion);
        self.on_event(&Event::Congestion(signal))
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.scheme.called(Call::OnTimeout);
        self.on_event(&Event::Timeout(timeout))
    }

    fn on_new_data(&mut self, _: &Prior, _: &Progress) -> Option<FlightPlan> {
        self.scheme.called(Call::OnNewData);
        None
    }

    fn allowance(&self) -> Allowance {
        self.scheme.called(Call::Allowance);
        self.allowance
    }

    fn is_slow_start(&self) -> bool {
        self.scheme.called(Call::IsSlowStart);
        true
    }

    fn phase(&self) -> &'static str {
        self.scheme.called(Call::Phase);
        self.about().name
    }

    fn repair(&self) -> Repair {
        self.scheme.called(Call::Repair);
        Repair::Reactive
    }

    fn needs_sent_events(&self) -> bool {
        self.scheme.called(Call::NeedsSentEvents);
        self.scheme.needs_sent_events()
    }

    fn credit_revision(&self, _: bool) -> Option<Revision> {
        self.scheme.called(Call::CreditRevision);
        None
    }

    fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
        self.scheme.called(Call::RecordUpdate);
        measured.map_or(RecordUpdate::Keep, RecordUpdate::Replace)
    }

    fn requirements(&self) -> Requirements {
        self.scheme.called(Call::Requirements);
        self.scheme.requirements()
    }

    fn request(&self, _: &RequestInputs) -> Option<Rate> {
        self.scheme.called(Call::Request);
        None
    }

    fn end(&mut self) {
        self.scheme.called(Call::End);
        self.release();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::sync::Mutex;

    use headstart_units::{Bytes, Span, Time};

    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use crate::catalogue::{Entry, Needs};

    /// Grows by each acknowledgement and ends at a loss; notes the connections that have ended.
    #[derive(Debug, Default)]
    struct Doubling {
        windows: Mutex<std::vec::Vec<Bytes>>,
        ended: Mutex<std::vec::Vec<u64>>,
    }

    impl ForeignScheme for Doubling {
        fn about(&self) -> &'static About {
            const ABOUT: About = About::new("doubling", Needs::Nothing, "a test's");
            &ABOUT
        }

        fn establish(&self, prior: &Prior) -> (u64, FlightPlan) {
            let mut windows = self.windows.lock().expect("no panic");
            windows.push(prior.mss * 4);
            (windows.len() as u64 - 1, FlightPlan::burst(prior.mss * 4))
        }

        fn on_event(&self, connection: u64, event: &Event<'_>) -> Response {
            let window = &mut self.windows.lock().expect("no panic")[connection as usize];
            let next = match event {
                Event::Ack(ack) => {
                    *window += ack.newly_acked;
                    Next::Stay
                }
                _ => Next::HandOver(HandOver::to_be_cut(*window)),
            };
            Response { next, allowance: Allowance::window(*window) }
        }

        fn end(&self, connection: u64) {
            self.ended.lock().expect("no panic").push(connection);
        }
    }

    fn doubling() -> (&'static Doubling, Entry) {
        let scheme: &Doubling = std::boxed::Box::leak(std::boxed::Box::default());
        (scheme, Entry::foreign(scheme).expect("no name of the catalogue"))
    }

    fn prior() -> Prior {
        Prior::bare(Time::ZERO, MSS, Span::from_millis(100), Bytes::new(141_000))
    }

    #[test]
    fn each_connection_has_a_state_of_its_own_until_it_hands_over_or_ends() {
        let (scheme, entry) = doubling();
        let (mut first, mut second) = (entry.scheme(), entry.scheme());
        assert_eq!(first.establish(&prior()), FlightPlan::burst(MSS * 4));
        let _ = second.establish(&prior());
        assert_eq!(first.on_ack(&acked(Time::ZERO, MSS)), Next::Stay);
        assert_eq!(first.allowance(), Allowance::window(MSS * 5));
        assert_eq!(second.allowance(), Allowance::window(MSS * 4));
        let cut = Next::HandOver(HandOver::to_be_cut(MSS * 4));
        assert_eq!(second.on_congestion(&lost(Time::ZERO, MSS)), cut);
        assert_eq!(*scheme.ended.lock().expect("no panic"), [1]);
        first.end();
        second.end();
        assert_eq!(*scheme.ended.lock().expect("no panic"), [1, 0], "each once");
    }

    #[test]
    fn a_name_of_the_catalogue_is_refused() {
        #[derive(Debug)]
        struct Taken(&'static About);
        impl ForeignScheme for Taken {
            fn about(&self) -> &'static About {
                self.0
            }
            fn establish(&self, _: &Prior) -> (u64, FlightPlan) {
                unreachable!("it has no entry")
            }
            fn on_event(&self, _: u64, _: &Event<'_>) -> Response {
                unreachable!("it has no entry")
            }
            fn end(&self, _: u64) {}
        }
        for name in ["halfback", "IW10", "initial-start", "tcp(x)", ""] {
            let about = std::boxed::Box::leak(std::boxed::Box::new(About::new("", Needs::Nothing, "")));
            about.name = name;
            let scheme = std::boxed::Box::leak(std::boxed::Box::new(Taken(about)));
            assert!(Entry::foreign(scheme).is_err(), "{name}");
        }
    }
}

//! Starts that draw on records of earlier connections: the experiments of the WiseStart paper.
//!
//! Source: WiseStart (WS in these modules): "Cold Start or Hot Start? Robust Slow Start in
//! Congestion Control with *A Priori* Knowledge for Mobile Web Services".
//!
//! | module | holds |
//! |---|---|
//! | [`trace_folder`] | a folder of packet-delivery traces |
//! | [`drift`] | difference of a record from the path it is used on: WS Figure 2 as a model |
//! | [`application`] | requests of an application over time: WS Figures 1 and 4 as a model |
//! | [`networks`] | networks of three kinds with the parameters of WS Table 1 |
//! | [`flow_events`] | the events of a run's only flow, and what they say of its start |
//! | [`changed_path`] | a path changed since its record: WS Figure 9 |
//! | [`network_sequence`] | an application on one network after the other: WS Figures 8 and 10 |
//! | [`pair`] | two flows on one link: WS Figure 11 |

pub mod application;
pub mod changed_path;
pub mod drift;
pub mod flow_events;
pub mod network_sequence;
pub mod networks;
pub mod pair;
pub mod trace_folder;

use clap::{Args, ValueEnum};
use headstart_sim::peer_address;
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate, Store};
use headstart_units::{Rate, Span, Time};

use crate::setup::Setup;
use drift::Drift;

/// Source of records.
#[derive(Args, Clone, Debug)]
pub struct RecordParams {
    /// Source of records
    #[arg(long, default_value = "previous", value_name = "WHERE")]
    pub records: Records,
}

/// Source of the record that a start may draw on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Records {
    /// From the connection before; in a sequence of networks, from another network (WS §4.3).
    Previous,
    /// From an earlier connection over the path, as far off as two of one peer are (WS Figure 2).
    Drawn,
    /// From an earlier connection over the same path that measured it exactly.
    Exact,
}

/// Peers for which such a history has room.
const HISTORY_CAPACITY: usize = 16;

/// A history with `record` for the only peer, as if written at the start of the run.
#[must_use]
pub fn history_of(record: Option<Record>) -> MemoryStore {
    let mut history = MemoryStore::new(HISTORY_CAPACITY, FixedHash::default());
    if let Some(record) = record {
        let (_, lease) = history.open(peer_address(0));
        history.close(lease, RecordUpdate::Replace(Record { saved_at: Time::ZERO, ..record }));
    }
    history
}

/// The record that a run left for the only peer of `group`.
#[must_use]
pub fn last_record(histories: &mut [MemoryStore], group: u16) -> Option<Record> {
    let history = histories.get_mut(usize::from(group))?;
    let (known, lease) = history.open(peer_address(0));
    history.close(lease, RecordUpdate::Keep);
    known.map(|known| known.record)
}

/// Record that a connection would have made of the path before it drifted.
#[must_use]
pub fn record_of(setup: &Setup, drift: Drift) -> Record {
    let tcp = setup.tcp();
    let payload = tcp.mss.get() as f64 / (tcp.mss + tcp.header).get() as f64;
    let btl_bw = setup.bottleneck().as_bytes_per_sec() as f64 * payload / drift.rate;
    let btl_bw = Rate::from_bytes_per_sec(btl_bw as u64);
    let rt_prop = Span::from_micros((setup.rtt().as_secs_f64() / drift.rtt * 1e6) as u64);
    let window = btl_bw * rt_prop;
    Record { btl_bw, rt_prop, window, ..Record::default() }
}

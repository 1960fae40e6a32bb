//! The history that survives a restart.
//!
//! A server remembers what connections to each peer measured ([`headstart_startup::history`]).
//! [`History`] stores that for a whole host. It is a bounded table that evicts the peer with the
//! oldest update, in shards for connections on all cores at once. A file behind it is optional. A
//! look-up never waits for the disk: a separate thread writes changes, at most a second late.
//!
//! ```
//! use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
//! use headstart_store::{History, Options, Store, unix_now};
//! use headstart_units::{Bytes, Rate, Span};
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("history");
//! let peer = "192.0.2.1".parse()?;
//! {
//!     let (history, _) = History::open(&file, Options::default())?;
//!     let (known, lease) = history.open(peer);
//!     assert!(known.is_none());
//!     history.close(lease, RecordUpdate::Replace(Record {
//!         saved_at: unix_now(),
//!         btl_bw: Rate::from_mbit_per_sec(25),
//!         rt_prop: Span::from_millis(50),
//!         window: Bytes::new(156_250),
//!         ..Record::default()
//!     }));
//! }
//! let (history, loaded) = History::open(&file, Options::default())?;
//! assert_eq!((loaded.records, loaded.notice()), (1, None));
//! let (known, lease) = history.open(peer);
//! assert_eq!(known.map(|known| known.record.btl_bw), Some(Rate::from_mbit_per_sec(25)));
//! history.close(lease, RecordUpdate::Keep);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`history`] | [`History`]: the table, its leases, the thread that writes |
//! | [`mod@file`] | the file: lock, header, slots, what is refused and what is repaired |
//! | [`slot`] | one record as 64 bytes with a checksum |
//! | [`error`] | the reasons why a file is refused |
//! | `fleet` | with the feature of that name: one history for several hosts, on a server |
//!
//! # Limits
//!
//! - A look-up that is followed by no measurement moves a peer up in memory, not in the file: after
//!   a restart peers are ordered by when they were last measured.
//! - After a restart peers are in other shards. A table that was full then evicts the oldest of
//!   shards that are above their capacity: of 65 536 records less than one in a hundred.
//! - It keeps no connection's lease over a restart: there are no connections then.

pub mod error;
pub mod file;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod history;
pub mod slot;

pub use error::Error;
pub use file::Loaded;
pub use headstart_adapter::Store;
pub use headstart_host::unix_now;
pub use history::{History, Options};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Connection vectors of a file, and the unit of their load.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use headstart_host::{read_at_most, without_mark};
use headstart_sim::vectors::{Vector, read};

/// Unit of the load of connection vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadCounts {
    /// Payload that is offered.
    Payload,
    /// All that the link has to carry for it if nothing is lost: headers, acks and handshakes too.
    Link,
}

/// A trace, read and parsed.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// Connections of the trace.
    pub vectors: Arc<[Vector]>,
}

impl FromStr for VectorFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = read_at_most(Path::new(text), read::MAX_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read `{text}`: {error}"))?;
        let bytes = without_mark(&bytes).map_err(|error| error.to_string())?;
        let mut vectors = read::from_bytes(bytes).map_err(|error| error.to_string())?;
        // A trace is in the order of connections' ends or starts; a replay needs the latter.
        vectors.sort_by_key(|vector| vector.start);
        Ok(Self { vectors: vectors.into() })
    }
}

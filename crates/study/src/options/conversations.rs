//! What the experiments of the fast-startup slides are told beyond what a race is (for `reproduce`).

use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use headstart_sim::vectors::{Vector, read};
use headstart_units::{Bytes, Span};

/// Connection vectors over a dumbbell.
#[derive(Args, Clone, Debug)]
pub struct ConversationOptions {
    /// Connection vectors of a trace, in either format of Tmix, instead of drawn ones (for `reproduce`)
    #[arg(long, value_name = "FILE", hide = true)]
    pub vectors: Option<VectorFile>,
    /// Drawn vectors have no larger answer (for `reproduce`)
    #[arg(long, default_value = "4 MB", value_name = "SIZE", hide = true)]
    pub largest_answer: Bytes,
    /// Replayed connections stay open for so long after their last data (for `reproduce`)
    #[arg(long, default_value = "0 s", value_name = "TIME", hide = true)]
    pub linger: Span,
    /// What the load of replayed connections is counted in (for `reproduce`)
    #[arg(long, default_value = "payload", value_name = "WHAT", hide = true)]
    pub load_counts: LoadCounts,
}

/// What the load of connection vectors is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadCounts {
    /// Payload that is offered.
    Payload,
    /// All that the link has to carry for it if nothing is lost: headers, acks and handshakes too.
    Link,
}

/// A trace that has been read.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// Its file.
    pub name: String,
    /// Its connections.
    pub vectors: Arc<[Vector]>,
}

impl FromStr for VectorFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = std::fs::read(text).map_err(|error| format!("cannot read it: {error}"))?;
        let mut vectors = read::from_bytes(&bytes).map_err(|error| error.to_string())?;
        // A trace's connections are in the order of their ends or of their starts; a replay wants the latter.
        vectors.sort_by_key(|vector| vector.start);
        Ok(Self { name: text.to_owned(), vectors: vectors.into() })
    }
}

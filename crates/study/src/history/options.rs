//! What the experiments with records can vary. Nothing of it is for the command line: plans set it.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use headstart_net::Trace;
use headstart_units::{Bytes, Ratio, Span};

use crate::options::TraceFile;

/// Options of experiments with records.
#[derive(Args, Clone, Debug)]
pub struct ReuseOptions {
    /// Rate of the path by the time its record is used, as a share of --rate (for `reproduce`)
    #[arg(long, default_value = "100 %", value_name = "SHARE", hide = true)]
    pub changed: Ratio,
    /// What the application has ready at first; the rest of the flow follows after --pause (for `reproduce`)
    #[arg(long, value_name = "SIZE", hide = true)]
    pub first_part: Option<Bytes>,
    /// How long after the opening the rest follows (for `reproduce`)
    #[arg(long, default_value = "0 ms", value_name = "TIME", hide = true)]
    pub pause: Span,
    /// How long after the first of two flows the second opens (for `reproduce`)
    #[arg(long, default_value = "0 s", value_name = "TIME", hide = true)]
    pub apart: Span,
    /// Where records come from (for `reproduce`)
    #[arg(long, default_value = "previous", value_name = "WHERE", hide = true)]
    pub records: Records,
    /// Rates of the networks that an application meets, over those of the model (for `reproduce`)
    #[arg(long, default_value = "100 %", value_name = "SHARE", hide = true)]
    pub scale: Ratio,
    /// How far apart the rates of these networks are: the ratio of two of them is raised to this power (for `reproduce`)
    #[arg(long, default_value = "100 %", value_name = "SHARE", hide = true)]
    pub spread: Ratio,
    /// Random loss of these networks, over that of the model (for `reproduce`)
    #[arg(long, default_value = "100 %", value_name = "SHARE", hide = true)]
    pub random_loss: Ratio,
    /// Connections that a client opens on each network, one after the other (for `reproduce`)
    #[arg(long, default_value_t = 6, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub visits: u8,
    /// Responses of an application, over those of the model (for `reproduce`)
    #[arg(long, default_value = "100 %", value_name = "SHARE", hide = true)]
    pub responses: Ratio,
    /// Folder of packet-delivery traces (mahimahi format) in place of generated ones (for `reproduce`)
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub traces: Option<TraceFolder>,
}

/// Where the record comes from that a start may draw on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Records {
    /// From the scenario before: of another network (WS §4.3).
    Previous,
    /// From an earlier connection over the same path, as far from it as two connections of one peer are (WS Figure 2).
    Drawn,
    /// From an earlier connection over the same path that measured it exactly.
    Exact,
}

/// All traces of a folder, in the order of their names.
#[derive(Clone, Debug)]
pub struct TraceFolder(pub Vec<TraceFile>);

/// The most files that are read.
const MOST_FILES: usize = 10_000;

impl FromStr for TraceFolder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let entries =
            std::fs::read_dir(Path::new(text)).map_err(|error| format!("cannot read {text}: {error}"))?;
        let mut files = vec![];
        for entry in entries {
            let path = entry.map_err(|error| format!("cannot read {text}: {error}"))?.path();
            if path.is_file() {
                files.push(path);
            }
            if files.len() > MOST_FILES {
                return Err(format!("found more than {MOST_FILES} files in {text}, expected at most these"));
            }
        }
        files.sort();
        let traces: Vec<TraceFile> = files
            .iter()
            .map(|path| {
                let name = path.display().to_string();
                let bytes = std::fs::read(path).map_err(|error| format!("cannot read {name}: {error}"))?;
                let trace = Trace::from_bytes(&bytes).map_err(|error| format!("{name}: {error}"))?;
                Ok(TraceFile { name, trace: Arc::new(trace) })
            })
            .collect::<Result<_, String>>()?;
        if traces.is_empty() {
            return Err(format!("found no file in {text}, expected packet-delivery traces"));
        }
        Ok(Self(traces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_in_the_order_of_names_and_faults_are_told_with_the_file() {
        let path = std::env::temp_dir().join(format!("headstart-traces-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        let text = path.display().to_string();
        let error = text.parse::<TraceFolder>().expect_err("empty");
        assert!(error.contains("found no file"), "{error}");
        std::fs::write(path.join("b"), "2\n").expect("written");
        std::fs::write(path.join("a"), "1\n").expect("written");
        let traces = text.parse::<TraceFolder>().expect("two traces").0;
        let found: Vec<&[u32]> = traces.iter().map(|file| file.trace.as_millis()).collect();
        assert_eq!(found, [&[1][..], &[2][..]]);
        std::fs::write(path.join("c"), "1\nx\n").expect("written");
        let error = text.parse::<TraceFolder>().expect_err("no trace");
        assert!(error.contains("c: line 2: found `x`"), "{error}");
        std::fs::remove_dir_all(&path).expect("it is there");
        assert!("/nowhere/at/all".parse::<TraceFolder>().expect_err("no folder").contains("cannot read"));
    }
}

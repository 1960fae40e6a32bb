//! A folder of packet-delivery traces.

use std::path::Path;
use std::str::FromStr;

use crate::options::TraceFile;

/// All traces of a folder, in the order of their names.
#[derive(Clone, Debug)]
pub struct TraceFolder(pub Vec<TraceFile>);

/// The most files that are read.
const MAX_FILES: usize = 10_000;

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
            if files.len() > MAX_FILES {
                return Err(format!("found more than {MAX_FILES} files in {text}, expected at most these"));
            }
        }
        files.sort();
        let traces: Vec<TraceFile> = files
            .iter()
            .map(|path| {
                let name = path.display().to_string();
                name.parse().map_err(|error| format!("{name}: {error}"))
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
    fn a_folder_is_read_in_the_order_of_names_and_errors_name_the_file() {
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

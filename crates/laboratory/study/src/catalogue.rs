//! List of all studies, and the documentation generated from it.

use anyhow::{Context, Result};

use crate::connection_vectors::ConnectionVectorParams;
use crate::drawn_paths::DrawnPaths;
use crate::dumbbell::DumbbellParams;
use crate::history::changed_path::ChangedPathParams;
use crate::history::network_sequence::NetworkSequence;
use crate::history::pair::PairParams;
use crate::newcomers::NewcomerParams;
use crate::newcomers::requests::RequestParams;
use crate::quick_start::attack::Attack;
use crate::quick_start::transfer::Transfer;
use crate::quick_start::web::WebParams;
use crate::study::StudyEntry;
use crate::wide_area::WideAreaParams;

/// Every study.
pub static ALL: [StudyEntry; 12] = [
    StudyEntry::of::<DumbbellParams>(),
    StudyEntry::of::<WideAreaParams>(),
    StudyEntry::of::<DrawnPaths>(),
    StudyEntry::of::<NewcomerParams>(),
    StudyEntry::of::<RequestParams>(),
    StudyEntry::of::<Transfer>(),
    StudyEntry::of::<WebParams>(),
    StudyEntry::of::<Attack>(),
    StudyEntry::of::<ConnectionVectorParams>(),
    StudyEntry::of::<ChangedPathParams>(),
    StudyEntry::of::<NetworkSequence>(),
    StudyEntry::of::<PairParams>(),
];

/// The study of that name.
///
/// # Errors
/// Names the value found and those expected.
pub fn find(name: &str) -> Result<&'static StudyEntry> {
    ALL.iter().find(|study| study.name == name).with_context(|| {
        let known: Vec<&str> = ALL.iter().map(|study| study.name).collect();
        format!("study: found `{name}`, expected one of {}", known.join(", "))
    })
}

/// The studies that have a parameter of that name.
#[must_use]
pub fn with_parameter(name: &str) -> Vec<&'static StudyEntry> {
    ALL.iter().filter(|study| study.parameters().iter().any(|parameter| parameter == name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Measure;

    #[test]
    fn names_of_numbers_are_checked() {
        let study = |name| find(name).expect("a study");
        for name in ["mean", "beside.mean", "long.overhead", "link-loss", "by-size/112205", "by-size"] {
            assert!(study("dumbbell").measures(name), "{name}");
        }
        for name in ["", "median", "besides.mean", "by-size/large", "long.link-loss"] {
            assert!(!study("dumbbell").measures(name), "{name}");
        }
        for name in ["fair", "first.share.late", "flow-1/12.5", "first.flow-2/0"] {
            assert!(study("flow-pair").measures(name), "{name}");
        }
        for name in ["first", "first.first.fair", "flow-3/0", "first.flow-1/x"] {
            assert!(!study("flow-pair").measures(name), "{name}");
        }
    }

    #[test]
    fn studies_have_names_and_numbers_of_their_own() {
        for (number, study) in ALL.iter().enumerate() {
            assert!(ALL[..number].iter().all(|other| other.name != study.name), "{study:?} twice");
            for declared in study.declared {
                for (at, measure) in declared.measures.iter().enumerate() {
                    assert!(
                        declared.measures[..at].iter().all(|other| other.name != measure.name),
                        "{measure:?} twice"
                    );
                    assert!(!measure.definition.is_empty(), "{measure:?}");
                }
            }
        }
        let error = find("contests").expect_err("no such study").to_string();
        assert!(error.contains("study: found `contests`, expected one of dumbbell, wide-area"), "{error}");
    }

    /// The part of `docs/definitions.md` that is generated from the studies.
    fn listed() -> String {
        let mut text = String::new();
        for study in &ALL {
            text += &format!("### `{}`: {}\n\n", study.name, study.about);
            let parameters = study.described();
            if !parameters.is_empty() {
                text += "| parameter | default | meaning |\n|---|---|---|\n";
            }
            for (name, default, help) in &parameters {
                text += &format!("| `{name}` | {default} | {help} |\n");
            }
            if !parameters.is_empty() {
                text += "\n";
            }
            for declared in study.declared {
                let prefixes: Vec<String> = declared
                    .prefixes
                    .iter()
                    .filter(|prefix| !prefix.is_empty())
                    .map(|prefix| format!("`{prefix}`"))
                    .collect();
                if !prefixes.is_empty() {
                    let also = if declared.prefixes.contains(&"") { "as they are and " } else { "" };
                    text += &format!("Names {also}after {}:\n\n", prefixes.join(", "));
                }
                text += "| number | unit | meaning |\n|---|---|---|\n";
                for Measure { name, unit, definition, .. } in declared.measures {
                    text += &format!("| `{name}` | {unit} | {definition} |\n");
                }
                text += "\n";
            }
        }
        text
    }

    const BEGIN: &str = "<!-- studies: `HEADSTART_WRITE_DOCS=1 cargo test -p headstart-study studies_are_documented` writes what follows -->\n\n";
    const END: &str = "<!-- end of studies -->\n";

    #[test]
    fn studies_are_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/definitions.md");
        let text = std::fs::read_to_string(path).expect("docs/definitions.md");
        let (before, rest) = text.split_once(BEGIN).expect("the beginning of the studies");
        let (found, after) = rest.split_once(END).expect("their end");
        if std::env::var_os("HEADSTART_WRITE_DOCS").is_some() {
            let text = format!("{before}{BEGIN}{}{END}{after}", listed());
            return std::fs::write(path, text).expect("docs/definitions.md can be written");
        }
        assert_eq!(found, listed(), "docs/definitions.md is not what the studies declare");
    }
}

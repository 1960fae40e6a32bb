//! Files of `headstart ab`: logs and counters of a server. Any bytes are judged, with numbers that
//! are numbers, or rejected in one line.
//!
//! The input is one file, or several that a line of dashes separates.

use std::path::Path;

use headstart_field::ab::{Bounds, Test, judge};

const BOUNDS: Bounds = Bounds { worth: 0.02, most_loss: 0.01, most_harm: 0.05, accepts_unknown_harm: true };
/// Most files of one run.
const FILES: usize = 3;

/// Judges the files, written into `folder`.
pub fn check(folder: &Path, input: &[u8]) {
    let mut rest = input;
    let mut files = vec![];
    while files.len() < FILES {
        const BETWEEN: &[u8] = b"\n---\n";
        let end = rest.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN);
        let file = folder.join(files.len().to_string());
        std::fs::write(&file, &rest[..end.unwrap_or(rest.len())]).expect("written");
        files.push(file);
        let Some(end) = end else { break };
        rest = &rest[end + BETWEEN.len()..];
    }
    for is_independent in [false, true] {
        match judge(&files, None, &BOUNDS, is_independent) {
            Ok(judged) => {
                assert!(!judged.reason.is_empty() && !judged.scheme.is_empty());
                assert!(!judged.scheme.contains(char::is_control));
                let tests = [judged.times, judged.losses, judged.other_times, judged.other_losses];
                for Test { low, high, .. } in tests.into_iter().flatten() {
                    assert!(low <= high, "{low} {high}");
                }
                for class in judged.classes {
                    assert!(class.times.iter().all(|it| it.low <= it.high));
                }
            }
            Err(error) => {
                let message = headstart_report::errors::one_line(&error);
                assert!(!message.contains(|c: char| c.is_control() && c != '\t'), "{message}");
            }
        }
    }
}

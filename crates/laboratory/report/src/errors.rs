//! Messages and exit codes of commands that fail.
//!
//! | exit code | when |
//! |---|---|
//! | 0 | done |
//! | 1 | something went wrong on the way: no answer, a port in use, a disk that is full |
//! | 2 | the input is refused: an option, a file, a name; nothing was run |
//! | 3 | `link --strict`: the machine did not keep real time |
//! | 130 | Ctrl-C ended a comparison |

use anyhow::{Error, Result};

/// The input is impossible on any machine: the exit code is 2, as for an unknown option.
// The wrapped error prints its own text, so that it appears once.
#[derive(Debug, thiserror::Error)]
#[error("{}", one_line(.0))]
struct Refusal(Error);

/// Marks errors of the input.
pub trait Refuse<T> {
    /// An error here is a refusal of the input.
    ///
    /// # Errors
    /// The same.
    fn or_refuse(self) -> Result<T>;
}

impl<T, E: Into<Error>> Refuse<T> for std::result::Result<T, E> {
    fn or_refuse(self) -> Result<T> {
        self.map_err(|error| Error::new(Refusal(error.into())))
    }
}

/// The exit code that goes with an error.
#[must_use]
pub fn exit_code(error: &Error) -> u8 {
    if error.downcast_ref::<Refusal>().is_some() { 2 } else { 1 }
}

/// An error and its causes in one line. Causes that an error names itself are printed once. Control
/// characters but newlines and tabs are escaped.
#[must_use]
pub fn one_line(error: &Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.ends_with(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    let is_foreign = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let mut printed = String::new();
    for c in line.chars() {
        if is_foreign(c) { printed.extend(c.escape_default()) } else { printed.push(c) }
    }
    printed
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("peers.history: {0}")]
    struct Unreadable(#[source] std::io::Error);

    fn unreadable() -> Unreadable {
        Unreadable(std::io::Error::other("no such file"))
    }

    #[test]
    fn a_cause_already_in_its_error_is_printed_once() {
        assert_eq!(one_line(&unreadable().into()), "peers.history: no such file");
        let deeper = Err::<(), _>(unreadable()).context("--history").unwrap_err();
        assert_eq!(one_line(&deeper), "--history: peers.history: no such file");
        assert_eq!(one_line(&anyhow!("b").context("a")), "a: b", "what is not named is added");
    }

    #[test]
    fn refusals_exit_with_2_and_failures_with_1() {
        let refused = Err::<(), _>(unreadable()).or_refuse().unwrap_err();
        assert_eq!((exit_code(&refused), one_line(&refused).as_str()), (2, "peers.history: no such file"));
        assert_eq!(exit_code(&refused.context("serve")), 2, "context keeps it");
        assert_eq!(exit_code(&unreadable().into()), 1);
    }

    /// A file's text must not reach the terminal as commands.
    #[test]
    fn control_characters_of_foreign_text_are_escaped() {
        let found = anyhow!("found `\u{1b}[2J\r\u{9b}`").context("line 1:\n\ta.toml");
        assert_eq!(one_line(&found), "line 1:\n\ta.toml: found `\\u{1b}[2J\\r\\u{9b}`");
    }
}

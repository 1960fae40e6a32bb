//! Schemes of the [`catalogue`] as values with static lifetime.
//!
//! A run refers to its schemes many times, and copies of an entry are large: each entry that an
//! option or a plan names is stored once.

use std::cell::RefCell;
use std::sync::{LazyLock, Mutex, PoisonError};

use headstart_startup::catalogue::{self, Entry, Native};
use headstart_startup::parameters::Error;

/// The schemes compared by default, baselines first.
static ALL: LazyLock<Vec<Entry>> = LazyLock::new(catalogue::all);
/// Schemes with parameters, and others not compared by default, if an option names them.
static OTHERS: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

thread_local! {
    /// Schemes that are not in the catalogue, of the work on this thread.
    static FOREIGN: RefCell<Vec<&'static Entry>> = const { RefCell::new(Vec::new()) };
}

/// Does the work, in which [`find`] finds these schemes by their names on this thread.
pub fn with_foreign<R>(entries: Vec<&'static Entry>, work: impl FnOnce() -> R) -> R {
    let before = FOREIGN.replace(entries);
    let result = work();
    FOREIGN.set(before);
    result
}

/// The schemes compared by default, baselines first.
#[must_use]
pub fn all() -> &'static [Entry] {
    &ALL
}

/// The scheme that a text names, as [`catalogue::find`] reads it.
///
/// # Errors
/// Names the scheme, the parameter, the value found and the one expected.
pub fn find(text: &str) -> Result<&'static Entry, Error> {
    if let Some(known) = FOREIGN.with_borrow(|all| all.iter().copied().find(|entry| entry.name == *text)) {
        return Ok(known);
    }
    let found = catalogue::find(text)?;
    if let Some(known) = ALL.iter().find(|entry| entry.name == found.name) {
        return Ok(known);
    }
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = others.iter().find(|entry| entry.name == found.name) {
        return Ok(known);
    }
    let kept: &'static Entry = Box::leak(Box::new(found));
    others.push(kept);
    Ok(kept)
}

/// The scheme that is the same as a transport's own start.
#[must_use]
pub fn native(native: Native) -> Option<&'static Entry> {
    let of = |about: &catalogue::About| (about.native == Some(native)).then_some(about.name);
    catalogue::families().iter().find_map(|family| of(family.about())).and_then(|name| find(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_stored_once() {
        for text in ["iw10", "halfback(additional=25%)", "google-quic"] {
            let first = find(text).expect("a scheme");
            assert!(std::ptr::eq(first, find(&text.to_uppercase()).expect("the same")), "{text}");
        }
        assert!(std::ptr::eq(native(Native::Bbr).expect("bbr"), find("bbr").expect("bbr")));
    }
}

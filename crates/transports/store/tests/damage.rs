//! Files that were cut, flipped, overwritten, or are of another program: refused or repaired, with
//! a notice; no false record is read.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::{number, peer, record, visit};
use headstart_store::error::Reason;
use headstart_store::{Error, History, Loaded, Options};
use proptest::prelude::*;
use tempfile::TempDir;

const PEERS: u32 = 20;
const SLOT: usize = 64;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    (folder, path)
}

fn options() -> Options {
    Options { capacity: 100, sync: false, ..Options::default() }
}

/// A file with the records of twenty peers.
fn whole() -> Vec<u8> {
    let (_folder, path) = folder();
    let (history, _) = History::open(&path, options()).expect("a history");
    (0..PEERS).for_each(|at| visit(&history, peer(at), record(u64::from(at))));
    drop(history);
    std::fs::read(path).expect("a file")
}

/// Opens a file of these bytes: an error, or the findings and the number of records. Checks that
/// no record is torn and that a second opening repairs nothing.
fn meet(bytes: &[u8]) -> Result<(Loaded, usize), Error> {
    let (_folder, path) = folder();
    std::fs::write(&path, bytes).expect("a file");
    match History::open(&path, options()) {
        Err(error) => {
            assert_eq!(std::fs::read(&path).expect("a file"), bytes, "what is refused is left as it is");
            let text = error.to_string();
            assert!(text.starts_with(&format!("history file {}: ", path.display())), "{text}");
            Err(error)
        }
        Ok((history, loaded)) => {
            let found: Vec<_> = (0..PEERS).filter_map(|at| Some((at, history.peek(peer(at))?))).collect();
            for (at, record) in &found {
                assert_eq!(number(record), Some(u64::from(*at)), "torn: {record:?}");
            }
            assert_eq!(found.len(), loaded.records, "nobody else is in it");
            drop(history);
            let (history, again) = History::open(&path, options()).expect("repaired");
            assert_eq!((again.notice(), history.len()), (None, found.len()));
            Ok((loaded, found.len()))
        }
    }
}

#[test]
fn a_truncated_file_gives_its_whole_records() {
    let bytes = whole();
    assert_eq!(bytes.len(), SLOT * (1 + PEERS as usize));
    for length in 0..=bytes.len() {
        let (loaded, records) = meet(&bytes[..length]).expect("every beginning of a history is one");
        assert_eq!(records, (length / SLOT).saturating_sub(1), "cut to {length} bytes");
        assert_eq!((loaded.damaged, loaded.future), (0, 0));
        let boundary = length % SLOT == 0;
        assert_eq!(loaded.truncated, !boundary, "cut to {length} bytes");
        assert_eq!(loaded.notice().is_some(), !boundary);
    }
}

#[test]
fn a_flipped_bit_is_detected_and_costs_one_record_at_most() {
    let bytes = whole();
    // Header, first record and last: those between are like these, and each bit costs a file.
    let tried = (0..2 * SLOT).chain(bytes.len() - SLOT..bytes.len());
    for bit in tried.flat_map(|byte| byte * 8..byte * 8 + 8) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match meet(&flipped) {
            Ok((loaded, records)) => {
                assert!(bit / 8 >= SLOT, "the header is checked");
                assert_eq!((loaded.damaged, records), (1, PEERS as usize - 1), "bit {bit}");
                let expected = "repaired: 1 damaged records were dropped; 19 records remain";
                assert!(loaded.notice().expect("said so").ends_with(expected));
            }
            Err(error) => {
                assert!(bit / 8 < SLOT, "{error}");
                let expected = match bit / 8 {
                    0..8 => matches!(error.reason, Reason::UnknownFormat),
                    8..12 => matches!(error.reason, Reason::Version { .. }),
                    _ => matches!(error.reason, Reason::Header),
                };
                assert!(expected, "bit {bit}: {error}");
            }
        }
    }
}

#[test]
fn a_partly_written_record_is_dropped() {
    let old = whole();
    let newer = {
        let (_folder, path) = folder();
        std::fs::write(&path, &old).expect("a file");
        let (history, _) = History::open(&path, options()).expect("a history");
        // Another record of these peers, for `meet` a torn one: only the first is to be met.
        visit(&history, peer(0), record(1_000_003));
        drop(history);
        std::fs::read(&path).expect("a file")
    };
    let at = (0..old.len()).find(|at| old[*at] != newer[*at]).expect("they differ") / SLOT * SLOT;
    let (first, last) = {
        let differ: Vec<_> = (at..at + SLOT).filter(|at| old[*at] != newer[*at]).collect();
        (differ[0], differ[differ.len() - 1])
    };
    for torn in first + 1..=last {
        let mut bytes = newer[..torn].to_vec();
        bytes.extend_from_slice(&old[torn..]);
        let (loaded, records) = meet(&bytes).expect("the rest is whole");
        assert_eq!((loaded.damaged, records), (1, PEERS as usize - 1), "torn at {torn}");
    }
}

#[test]
fn files_of_other_kinds_are_refused_and_left_as_they_are() {
    let header = whole()[..SLOT].to_vec();
    let mut later = header.clone();
    later[8] = 2;
    let mut damaged = header.clone();
    damaged[40] = 1;
    #[rustfmt::skip]
    let rows: [(&[u8], &str); 5] = [
        (b"[server]\nport = 4433\n",  "found a file of another kind, expected a history; it was left as it is"),
        (b"x",                        "found a file of another kind, expected a history; it was left as it is"),
        (&[0; 640],                   "found a file of another kind, expected a history; it was left as it is"),
        (&later,                      "found version 2, expected 1; it was left as it is"),
        (&damaged,                    "found a damaged header, so that no record can be relied upon; remove the file to begin anew"),
    ];
    for (bytes, expected) in rows {
        let text = meet(bytes).expect_err(expected).to_string();
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn anything_but_a_regular_file_is_refused() {
    let (folder, path) = folder();
    for path in [folder.path(), Path::new("/dev/null")] {
        let text = History::open(path, options()).expect_err("no file").to_string();
        assert!(text.ends_with("found something that is no regular file, expected a file"), "{text}");
    }
    let text = History::open(path.join("under"), options()).expect_err("no folder").to_string();
    assert!(text.contains("cannot open it: "), "{text}");
    for capacity in [0, usize::MAX] {
        let text = History::open(&path, Options { capacity, ..options() }).expect_err("no size").to_string();
        assert!(text.ends_with("expected 1 to 4194304"), "{text}");
        assert!(!path.exists(), "nothing was made");
    }
}

#[test]
fn a_second_user_of_a_file_is_refused_until_the_first_is_done() {
    let (_folder, path) = folder();
    let (history, _) = History::open(&path, options()).expect("a history");
    visit(&history, peer(1), record(1));
    let text = History::open(&path, options()).expect_err("in use").to_string();
    assert!(text.ends_with("in use by another process, expected to be the only one"), "{text}");
    drop(history);
    let (history, _) = History::open(&path, options()).expect("free again");
    assert_eq!(history.peek(peer(1)), Some(record(1)));
}

#[test]
fn only_the_owner_may_read_the_file() {
    let (_folder, path) = folder();
    let _history = History::open(&path, options()).expect("a history");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// One that was there before, made by another program.
#[test]
fn a_file_that_others_may_read_is_made_its_owners_alone() {
    let (_folder, path) = folder();
    std::fs::write(&path, whole()).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("its owner may");
    let (history, _) = History::open(&path, options()).expect("a history");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!((history.len(), mode & 0o777), (PEERS as usize, 0o600), "{mode:o}");
}

/// Only root may give a file to somebody else.
#[test]
fn another_users_file_that_others_may_write_is_refused() {
    let (_folder, path) = folder();
    std::fs::write(&path, whole()).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("its owner may");
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
        return;
    }
    let error = History::open(&path, options()).expect_err("refused");
    assert!(error.to_string().contains("others may write (mode 666)"), "{error}");
}

#[test]
fn a_file_that_is_removed_is_made_anew_with_all_records() {
    let (_folder, path) = folder();
    let (history, _) = History::open(&path, options()).expect("a history");
    (0..PEERS).for_each(|at| visit(&history, peer(at), record(u64::from(at))));
    history.flush().expect("written");
    std::fs::remove_file(&path).expect("removed");
    visit(&history, peer(PEERS), record(7));
    history.flush().expect("written");
    assert_eq!(history.removals(), 1);
    // Another program's file is not written over.
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, "other").expect("a file");
    let error = history.flush().expect_err("not written").to_string();
    assert!(error.contains("another file has taken its place"), "{error}");
    assert_eq!(std::fs::read(&path).expect("a file"), b"other");
    std::fs::remove_file(&path).expect("removed");
    drop(history);
    let (history, loaded) = History::open(&path, options()).expect("a history");
    assert_eq!((history.len(), loaded.notice()), (PEERS as usize + 1, None));
}

#[test]
fn a_file_longer_than_any_history_is_refused_without_being_read() {
    let (_folder, path) = folder();
    std::fs::write(&path, &whole()[..SLOT]).expect("a file");
    // Sparse: it takes no room.
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(1 << 40).expect("long");
    let text = History::open(&path, options()).expect_err("too long").to_string();
    assert!(text.ends_with("found room for 17179869183 peers, expected at most 4194304"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Several stretches overwritten with anything, then cut anywhere.
    #[test]
    fn no_damage_to_a_file_yields_a_torn_record(
        stretches in prop::collection::vec((0_usize..64 * 21, prop::collection::vec(any::<u8>(), 1..200)), 0..4),
        length in prop_oneof![Just(usize::MAX), 0_usize..64 * 21],
        appended in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = whole();
        for (at, stretch) in stretches {
            let end = (at + stretch.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&stretch[..end - at]);
        }
        bytes.truncate(length);
        bytes.extend_from_slice(&appended);
        let _ = meet(&bytes);
    }

    #[test]
    fn no_file_contents_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = meet(&bytes);
    }
}

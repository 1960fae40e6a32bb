//! The parser of a client's hint: any bytes parse to a hint that is encoded as the same bytes, or
//! are rejected with the expectation.

#![no_main]

use headstart_startup::prior::Hint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match Hint::parse(bytes) {
    Ok(hint) => assert_eq!(hint.emit().as_ref().map(<[u8; 6]>::as_slice), Some(bytes)),
    Err(error) => assert!(error.to_string().contains("expected")),
});

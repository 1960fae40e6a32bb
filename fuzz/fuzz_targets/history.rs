//! The parser of one slot of a history file: any bytes are free, damaged, or a record that is
//! encoded as the same bytes.

#![no_main]

use headstart_store::slot::{self, Slot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: [u8; slot::SIZE]| match slot::parse(&bytes) {
    Slot::Free => assert_eq!(bytes, slot::FREE),
    Slot::Used(peer, record) => assert_eq!(slot::emit(peer, &record), bytes),
    Slot::Damaged => {}
});

//! The reader of one slot of a history file: whatever the bytes, it is free, damaged, or a record
//! that is written back as the same bytes.

#![no_main]

use headstart_store::slot::{self, Slot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: [u8; slot::SIZE]| match slot::parse(&bytes) {
    Slot::Free => assert_eq!(bytes, slot::FREE),
    Slot::Used(peer, record) => assert_eq!(slot::emit(peer, &record), bytes),
    Slot::Damaged => {}
});

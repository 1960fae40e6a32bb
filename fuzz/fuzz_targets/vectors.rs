//! The reader of connection vectors: whatever the bytes, it reads connections that print and read
//! back the same, or refuses with one line that says what was expected.

#![no_main]

use headstart_sim::vectors::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match read::from_bytes(text) {
        Ok(vectors) => {
            let text: String = vectors.iter().map(ToString::to_string).collect();
            assert!(vectors.iter().all(|vector| vector.units.len() == vector.epochs().len()));
            assert_eq!(read::from_bytes(text.as_bytes()), Ok(vectors));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("expected") && message.lines().count() == 1);
        }
    }
});

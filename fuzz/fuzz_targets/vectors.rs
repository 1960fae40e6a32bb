//! The parser of connection vectors: any bytes parse to connections that survive printing and
//! parsing, or are rejected with a line that names the expectation.

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

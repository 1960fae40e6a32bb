//! The parser of connection vectors: any bytes parse to connections that have data, or are rejected
//! with a line that names the expectation.

#![no_main]

use headstart_sim::vectors::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| match read::from_bytes(text) {
    Ok(vectors) => {
        assert!(vectors.iter().all(|vector| vector.units.len() == vector.epochs().len()));
        assert!(vectors.iter().flat_map(|vector| &vector.units).all(|unit| !unit.bytes.is_zero()));
    }
    Err(error) => {
        let message = error.to_string();
        assert!(message.contains("expected") && message.lines().count() == 1);
    }
});

//! The parser of packet-delivery traces: any bytes parse to a trace that survives printing and
//! parsing, or are rejected with the expectation.

#![no_main]

use headstart_net::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match Trace::from_bytes(text) {
        Ok(trace) => {
            let millis = trace.as_millis();
            assert!(millis.is_sorted() && millis.last() > Some(&0));
            let _ = trace.mean_rate();
            assert_eq!(Trace::from_bytes(trace.to_string().as_bytes()), Ok(trace));
        }
        Err(error) => assert!(error.to_string().contains("expected")),
    }
});

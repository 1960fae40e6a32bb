//! A request of a simulated or emulated client: whatever the bytes, they are read and written the
//! same, or refused with one line that says what was expected.

#![no_main]

use headstart_stack::request::Request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|written: &[u8]| {
    match Request::parse(written) {
        Ok(request) => assert_eq!(request.emit(), written),
        Err(malformed) => {
            let message = malformed.to_string();
            assert!(message.contains("expected") && message.lines().count() == 1);
        }
    }
});

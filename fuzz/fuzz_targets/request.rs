//! The request of a simulated or emulated client: any bytes are parsed and encoded as the same
//! bytes, or rejected with a line that names the expectation.

#![no_main]

use headstart_virtual_quic::request::TransferRequest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|written: &[u8]| {
    match TransferRequest::parse(written) {
        Ok(request) => assert_eq!(request.emit(), written),
        Err(malformed) => {
            let message = malformed.to_string();
            assert!(message.contains("expected") && message.lines().count() == 1);
        }
    }
});

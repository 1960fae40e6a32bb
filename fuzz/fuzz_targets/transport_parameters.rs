//! A peer's transport parameters: any bytes are parsed or rejected, and a parsed hint can be
//! encoded again.
#![no_main]

use headstart_quic::hint;
use headstart_startup::hint::Steps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|parameters: &[u8]| {
    let _ = hint::flow_control(parameters);
    if let Ok(Some(read)) = hint::find(parameters) {
        let mut written = vec![];
        hint::append(read, &mut written);
        assert_eq!(hint::find(&written), Ok(Some(read)));
        if let Some(rounded) = read.quantised(Steps::default()) {
            assert!(rounded.bandwidth <= read.bandwidth);
        }
    }
});

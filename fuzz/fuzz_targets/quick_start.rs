//! The parsers of Quick-Start's three options: any bytes parse to an option that survives encoding
//! and parsing, or are rejected with the expectation.

#![no_main]

use headstart_startup::quick_start::{IpOption, Response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match IpOption::parse_ipv4(bytes) {
        Ok(option) => assert_eq!(IpOption::parse_ipv4(&option.emit_ipv4()), Ok(option)),
        Err(error) => assert!(error.to_string().contains("expected")),
    }
    match IpOption::parse_ipv6(bytes) {
        Ok(option) => assert_eq!(IpOption::parse_ipv6(&option.emit_ipv6()), Ok(option)),
        Err(error) => assert!(error.to_string().contains("expected")),
    }
    match Response::parse(bytes) {
        Ok(response) => assert_eq!(Response::parse(&response.emit()), Ok(response)),
        Err(error) => assert!(error.to_string().contains("expected")),
    }
});

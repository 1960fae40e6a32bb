//! The parsers of command lines and plans: quantities, and the options made of them.
//!
//! Nothing panics, and a quantity printed and parsed again is the same, to three decimals.

#![no_main]

use headstart_study::options::{Buffer, Burst, FetchName, HopLink, Rtts, SchemeName, SizeName};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = text.parse::<Packets>();
    let _ = text.parse::<Ratio>();
    let _ = text.parse::<Rtts>();
    let _ = text.parse::<Burst>();
    let _ = text.parse::<HopLink>();
    let _ = text.parse::<FetchName>();
    let _ = text.parse::<SizeName>();
    let _ = text.parse::<SchemeName>();
    let rate = text.parse::<Rate>().unwrap_or(Rate::MAX);
    let span = text.parse::<Span>().unwrap_or(Span::MAX);
    if let Ok(buffer) = text.parse::<Buffer>() {
        let _ = buffer.limit(rate, span);
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        let printed = bytes.to_string();
        let again = printed.parse::<Bytes>().expect("what is printed can be read");
        assert!(bytes.get().abs_diff(again.get()) <= bytes.get() / 1000, "{bytes:?} became {again:?}");
    }
});

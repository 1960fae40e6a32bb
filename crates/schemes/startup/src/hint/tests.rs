use super::*;
use alloc::string::ToString;
use proptest::prelude::*;

fn accesses() -> impl Strategy<Value = Access> {
    prop::sample::select(&Access::ALL[..])
}

fn hint(text: &str, access: Access) -> Hint {
    Hint { bandwidth: text.parse().expect("a rate"), access }
}

#[test]
fn the_encoding_of_a_hint_matches_a_hand_made_one() {
    // 50 Mbit/s are 50 000 kbit/s, 0xc350.
    assert_eq!(hint("50 Mbit/s", Access::Dsl).emit(), Some([1, 2, 0, 0, 0xc3, 0x50]));
    assert_eq!(Hint::parse(&[1, 2, 0, 0, 0xc3, 0x50]), Ok(hint("50 Mbit/s", Access::Dsl)));
}

#[test]
fn technologies_have_fixed_codes() {
    for (code, name) in ["unknown", "ethernet", "dsl", "cable", "wifi", "3g", "lte"].into_iter().enumerate() {
        let access = Access::ALL[code];
        assert_eq!((usize::from(access.code()), access.name()), (code, name));
        assert_eq!(name.to_uppercase().parse(), Ok(access));
    }
    let error = "adsl".parse::<Access>().expect_err("no such name").to_string();
    assert_eq!(error, "expected an access technology: unknown, ethernet, dsl, cable, wifi, 3g, lte");
}

#[test]
fn the_parameter_number_is_valid_and_not_reserved() {
    const { assert!(PARAMETER < 1 << 62, "RFC 9000 §16: a variable-length integer has 62 bits") };
    assert_ne!(PARAMETER % 31, 27, "RFC 9000 §18.1");
}

#[test]
fn an_invalid_hint_is_refused_with_a_reason() {
    #[rustfmt::skip]
    let rows: [(&[u8], &str); 8] = [
        (&[],                                "found 0 bytes of hint, expected 6"),
        (&[1, 2, 0, 0, 1],                   "found 5 bytes of hint, expected 6"),
        (&[1, 2, 0, 0, 0, 1, 0],             "found 7 bytes of hint, expected 6"),
        (&[2],                               "found hint version 2, expected 1"),
        (&[0, 2, 0, 0, 0, 1],                "found hint version 0, expected 1"),
        (&[1, 7, 0, 0, 0, 1],                "found access technology 7, expected 0 to 6"),
        (&[1, 2, 0, 0, 0, 0],                "found a bandwidth of 0 bit/s, expected at least 1 kbit/s"),
        (&[1, 2, 0xff, 0xff, 0xff, 0xff],    "found a bandwidth of 4294.967 Gbit/s, expected at most 400 Gbit/s"),
    ];
    for (bytes, reason) in rows {
        assert_eq!(Hint::parse(bytes).expect_err(reason).to_string(), reason);
    }
}

#[test]
fn a_zero_hint_is_not_encoded_and_a_large_one_is_capped() {
    assert_eq!(hint("999 bit/s", Access::Lte).emit(), None);
    let most = Hint { bandwidth: Rate::MAX, access: Access::Lte }.emit().expect("a value");
    assert_eq!(Hint::parse(&most), Ok(hint("400 Gbit/s", Access::Lte)));
}

/// Steps of a tenth of a decade are Renard's R10 (ISO 3).
#[test]
fn steps_are_preferred_numbers_rounded_down() {
    #[rustfmt::skip]
    let rows = [
        ("99.999 kbit/s",  None,              None),
        ("100 kbit/s",     Some("100 kbit/s"), Some("100 kbit/s")),
        ("999 kbit/s",     Some("800 kbit/s"), Some("630 kbit/s")),
        ("1 Mbit/s",       Some("1 Mbit/s"),   Some("1 Mbit/s")),
        ("15.9 Mbit/s",    Some("12.5 Mbit/s"), Some("10 Mbit/s")),
        ("16 Mbit/s",      Some("16 Mbit/s"),  Some("16 Mbit/s")),
        ("50 Mbit/s",      Some("50 Mbit/s"),  Some("40 Mbit/s")),
        ("51.39 Mbit/s",   Some("50 Mbit/s"),  Some("40 Mbit/s")),
        ("249.999 Mbit/s", Some("200 Mbit/s"), Some("160 Mbit/s")),
        ("1 Gbit/s",       Some("1 Gbit/s"),   Some("1 Gbit/s")),
        ("10 Gbit/s",      Some("10 Gbit/s"),  Some("10 Gbit/s")),
        ("25 Gbit/s",      Some("10 Gbit/s"),  Some("10 Gbit/s")),
    ];
    for (rate, ten, five) in rows {
        let parsed = |text: Option<&str>| text.map(|text| text.parse::<Rate>().expect("a rate"));
        let exact: Rate = rate.parse().expect("a rate");
        assert_eq!(Steps::Ten.floor(exact), parsed(ten), "{rate}");
        assert_eq!(Steps::Five.floor(exact), parsed(five), "{rate}");
    }
}

#[test]
fn quantised_hints_hide_small_differences() {
    let values = |steps: Steps| {
        let every = (100..=1_000_000).map(|kbit| {
            let exact = Hint { bandwidth: Rate::from_bits_per_sec(kbit * 1000), access: Access::Lte };
            exact.quantised(steps).map(|hint| hint.bandwidth)
        });
        let mut values: alloc::vec::Vec<_> = every.collect();
        values.dedup();
        values.len()
    };
    assert_eq!((values(Steps::Ten), values(Steps::Five)), (41, 21), "four decades and their end");
}

proptest! {
    #[test]
    fn encoding_and_decoding_are_inverse(kbit in 1_u64..=400_000_000, access in accesses()) {
        let hint = Hint { bandwidth: Rate::from_bytes_per_sec(kbit * 125), access };
        let bytes = hint.emit().expect("not nothing");
        prop_assert_eq!(Hint::parse(&bytes), Ok(hint));
    }

    #[test]
    fn every_byte_string_decodes_or_is_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..9), real: bool) {
        if let (true, Some(first)) = (real, bytes.first_mut()) {
            *first = VERSION;
        }
        if let Ok(hint) = Hint::parse(&bytes) {
            let written = hint.emit();
            prop_assert_eq!(written.as_ref().map(<[u8; SIZE]>::as_slice), Some(&bytes[..]));
        }
    }

    /// Never more than the estimate, never less than the share of the steps, and idempotent.
    #[test]
    fn a_quantised_rate_is_a_little_less(bits in 100_000_u64..=10_000_000_000, access in accesses()) {
        let exact = Hint { bandwidth: Rate::from_bits_per_sec(bits), access };
        for (steps, percent) in [(Steps::Ten, 78), (Steps::Five, 62), (Steps::Exact, 100)] {
            let coarse = exact.quantised(steps).expect("enough to be said");
            prop_assert!(coarse.bandwidth <= exact.bandwidth);
            prop_assert!(coarse.bandwidth * 100 >= exact.bandwidth * percent, "{coarse:?}");
            prop_assert_eq!(coarse.quantised(steps), Some(coarse));
            prop_assert_eq!(coarse.access, access);
        }
    }
}

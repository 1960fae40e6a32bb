//! Names of schemes: nothing panics, errors are short, and a printed name parses to the same
//! scheme.

#![no_main]

use headstart_startup::catalogue;
use headstart_startup::parameters::split_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for part in split_list(text) {
        match catalogue::find(part) {
            Ok(entry) => {
                let again = catalogue::find(&entry.name).expect("a canonical name is a scheme");
                assert_eq!(again.name, entry.name, "{part}");
            }
            Err(error) => assert!(error.to_string().len() < 1000, "{error}"),
        }
    }
});

//! The HAR parser: any bytes parse to a page that a simulator can fetch, or are rejected with a
//! line that names the expectation.

#![no_main]

use headstart_study::workload::web::har::{self, MAX_ENTRIES, MAX_OBJECT_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    // The first byte selects the page.
    let page = content.first().map(|byte| (byte % 4).to_string()).filter(|page| page != "0");
    match har::parse(content, page.as_deref()) {
        Ok(page) => {
            assert!((1..=MAX_ENTRIES).contains(&page.objects.len()));
            for object in &page.objects {
                assert!(usize::from(object.origin) < page.origins.len());
                assert!((1..=MAX_OBJECT_BYTES).contains(&object.bytes.get()));
            }
            assert!(!page.title.contains(char::is_control));
            assert!(page.origins.iter().all(|origin| !origin.contains(char::is_control)));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("expected") && message.lines().count() == 1);
        }
    }
});

//! Papers, plans and claims: three texts separated by a line of dashes. Any text is parsed within
//! bounds or rejected with a message; a missing part is replaced by that of a valid paper and plan,
//! so that every parser is reached.

#![no_main]

use headstart_paper::plan::{MAX_POINTS, Paper, Plan};
use headstart_paper::{claim, draw};
use libfuzzer_sys::fuzz_target;

const PAPER: &str = r#"
title = "A paper"
citation = "Somebody"
about = "Nothing special."
schemes = { "TCP" = "iw2", "TCP-10" = "iw10" }
[variants.modern]
about = "as it is"
[variants.old]
about = "as it was"
transport = { detection = "rfc6675" }
"#;

const PLAN: &str = r#"
title = "A figure"
source = "Figure 1"
shows = "something"
schemes = ["TCP", "TCP-10"]
[sweep]
load = ["10 %", "50 %"]
"#;

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, "\n---\n");
    let given = parts.next().filter(|part| !part.is_empty()).unwrap_or(PAPER);
    let plan_text = parts.next().filter(|part| !part.is_empty()).unwrap_or(PLAN);
    let paper = match Paper::read(given) {
        Ok(paper) => paper,
        Err(error) => return assert!(!format!("{error:#}").is_empty()),
    };
    for is_quick in [false, true] {
        let Ok(plan) = Plan::read(plan_text, &paper, is_quick) else { continue };
        assert!((1..=MAX_POINTS).contains(&plan.points.len()));
        assert!(!plan.variants.is_empty());
        let _ = draw::read(plan_text, &plan);
        let Ok(claims) = claim::read(parts.clone().next().unwrap_or(""), &plan) else { continue };
        for claim in &claims {
            assert!(!(claim.paper().is_empty() && claim.bound().is_empty()));
            let _ = claim.recorded(is_quick);
        }
        if plan.points.len() <= 16 {
            let _ = plan.setups(headstart_carriers::ALL);
        }
    }
});

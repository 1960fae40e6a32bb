//! `headstart examples`: a small site, the page as a browser would save it, and traces of three
//! kinds of links, to try the commands on.
//!
//! All of it is made here, and the same on any machine.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;

use super::terminal::print;
use crate::errors::Refuse as _;

/// Options of `examples`.
#[derive(Args, Debug)]
pub struct ExamplesArgs {
    /// Folder for site/, page.har, drive.down, and leo and 5g each as .csv and .delay
    #[arg(default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

struct File {
    name: &'static str,
    mime: &'static str,
    text: String,
}

/// Writes them; a file that is there and differs is left alone.
///
/// # Errors
/// If the folder cannot be written, or holds other files of these names.
pub fn run(args: &ExamplesArgs) -> Result<()> {
    let site = site();
    let mut all: Vec<(String, String)> =
        site.iter().map(|file| (format!("site/{}", file.name), file.text.clone())).collect();
    all.push(("page.har".to_owned(), har(&site)));
    all.push(("drive.down".to_owned(), trace()));
    for (name, link) in [("leo", &LEO), ("5g", &FIFTH)] {
        let (rates, delays) = link.traces();
        all.extend([(format!("{name}.csv"), rates), (format!("{name}.delay"), delays)]);
    }
    for (name, text) in &all {
        let path = args.folder.join(name);
        if std::fs::read(&path).is_ok_and(|found| found != text.as_bytes()) {
            let path = path.display();
            return Err(anyhow!(
                "{path}: found another file of that name, expected none: name an empty folder"
            ))
            .or_refuse();
        }
    }
    if args.folder.is_file() {
        return Err(anyhow!("{}: found a file, expected a folder", args.folder.display())).or_refuse();
    }
    std::fs::create_dir_all(args.folder.join("site"))
        .map_err(|error| anyhow!("cannot create {}: {error}", args.folder.join("site").display()))
        .or_refuse()?;
    for (name, text) in &all {
        let path = args.folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let folder = args.folder.display();
    print(&format!(
        "{folder}/site: a page of {} files; {folder}/page.har: the same as a browser saves it; {folder}/drive.down: a minute of a \
         link whose rate changes; {folder}/leo.csv and leo.delay, 5g.csv and 5g.delay: rates and delays of a minute by \
         satellite and by mobile network (--trace, --delay-trace)\n",
        site.len()
    ))
}

/// Pictures of the site, each with its number of circles.
const PICTURES: [(&str, u32); 6] = [
    ("picture-1.svg", 1400),
    ("picture-2.svg", 700),
    ("picture-3.svg", 420),
    ("picture-4.svg", 300),
    ("picture-5.svg", 120),
    ("picture-6.svg", 60),
];

fn site() -> Vec<File> {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<title>An example</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n\
         <script src=\"script.js\" defer></script>\n<h1>An example</h1>\n",
    );
    for (name, _) in PICTURES {
        let _ = writeln!(page, "<img src=\"{name}\" alt=\"circles\" width=\"320\" height=\"320\">");
    }
    for number in 1..=120 {
        let _ = writeln!(page, "<p>Paragraph {number} of a page that is as long as many are.</p>");
    }
    let mut style = String::from("body { font-family: sans-serif; margin: 2em }\n");
    for number in 1..=300 {
        let _ = writeln!(style, ".column-{number} {{ width: {}px; padding: {}px }}", number * 4, number % 17);
    }
    let mut script = String::from("const squares = [];\n");
    for number in 1..=800 {
        let _ = writeln!(script, "squares.push({});", number * number);
    }
    let file = |name, mime, text| File { name, mime, text };
    let mut files = vec![
        file("index.html", "text/html", page),
        file("style.css", "text/css", style),
        file("script.js", "text/javascript", script),
    ];
    files.extend(
        PICTURES
            .iter()
            .zip(1..)
            .map(|(&(name, circles), seed)| file(name, "image/svg+xml", picture(seed, circles))),
    );
    files
}

/// Numbers below a limit, drawn by a linear congruential generator.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}

/// Circles at random.
fn picture(seed: u64, circles: u32) -> String {
    let mut below = draws(seed);
    let mut svg = String::from("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 1000\">\n");
    for _ in 0..circles {
        let (x, y, radius, colour) = (below(1000), below(1000), 5 + below(40), below(1 << 24));
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"#{colour:06x}\" opacity=\"0.6\"/>"
        );
    }
    svg + "</svg>\n"
}

/// The page as a browser saves it after its first visit.
fn har(site: &[File]) -> String {
    let entry = |file: &File| {
        let path = if file.name == "index.html" { "" } else { file.name };
        serde_json::json!({
            "startedDateTime": "2026-01-01T00:00:00.000Z",
            "time": 1,
            "request": { "method": "GET", "url": format!("https://example.org/{path}"), "httpVersion": "h2", "headers": [] },
            "response": {
                "status": 200,
                "httpVersion": "h2",
                "headers": [],
                "headersSize": 120,
                "bodySize": file.text.len(),
                "content": { "size": file.text.len(), "mimeType": file.mime },
            },
        })
    };
    let entries: Vec<serde_json::Value> = site.iter().map(entry).collect();
    let document = serde_json::json!({ "log": {
        "version": "1.2",
        "creator": { "name": "headstart", "version": env!("CARGO_PKG_VERSION") },
        "entries": entries,
    } });
    format!("{document:#}\n")
}

/// Rates of the trace in Mbit/s, each for two seconds: a drive through cells of a mobile network.
const DRIVE_RATES: [u64; 30] = [
    12, 14, 15, 13, 10, 8, 6, 5, 4, 6, 9, 13, 16, 18, 17, 15, 12, 9, 7, 3, 2, 4, 8, 12, 15, 14, 11, 9, 10, 11,
];

/// A packet-delivery trace (mahimahi): the milliseconds at which a packet of 1500 bytes can leave.
fn trace() -> String {
    let mut lines = String::new();
    // In bits; a packet has 12 000.
    let mut credit = 0;
    for millis in 1..=60_000 {
        credit += DRIVE_RATES[(millis - 1) / 2000] * 1000;
        while credit >= 12_000 {
            credit -= 12_000;
            let _ = writeln!(lines, "{millis}");
        }
    }
    lines
}

/// A link whose rate and delay change with every slot, and wander within it: no recording, but of
/// the shape of such.
struct Slots {
    seed: u64,
    /// Length of a slot in tenths of a second.
    tenths: u64,
    /// Rates of slots in Mbit/s, the least and the most; within one they wander by a quarter.
    rates: (u64, u64),
    /// Extra delays of slots in hundredths of a millisecond, the least and the most.
    delays: (u64, u64),
    /// Time without a way at each change, in milliseconds: packets wait until it is over.
    outage: u64,
}

/// A terminal of a constellation in low orbit changes its satellite every 15 s.
const LEO: Slots = Slots { seed: 1, tenths: 150, rates: (60, 220), delays: (400, 2200), outage: 60 };
/// A phone on the move changes its cell every five seconds.
const FIFTH: Slots = Slots { seed: 2, tenths: 50, rates: (30, 600), delays: (100, 900), outage: 30 };

impl Slots {
    /// A minute: rates as `--trace` reads them, one a tenth of a second, and delays as
    /// `--delay-trace` does.
    fn traces(&self) -> (String, String) {
        let mut below = draws(self.seed);
        let mut between = |(least, most): (u64, u64)| least + below(most - least + 1);
        let (mut rates, mut delays) = ("time_s,rate_mbit_per_s\n".to_owned(), String::new());
        let (mut rate, mut delay) = (0, 0);
        for tenth in 0..600 {
            if tenth % self.tenths == 0 {
                (rate, delay) = (between(self.rates), between(self.delays));
            }
            let percent = between((75, 125));
            let _ = writeln!(rates, "{}.{},{}", tenth / 10, tenth % 10, rate * percent / 100);
            for step in 0..10 {
                let since = (tenth % self.tenths) * 100 + step * 10;
                let waits = self.outage.saturating_sub(since) * 100;
                let all = delay + between((0, 200)) + waits;
                let _ = writeln!(delays, "{}.{:02}", all / 100, all % 100);
            }
        }
        (rates, delays)
    }
}

#[cfg(test)]
mod tests {
    use headstart_units::Span;

    use super::*;

    #[test]
    fn the_example_files_parse() {
        let folder = tempfile::tempdir().expect("a folder");
        let args = ExamplesArgs { folder: folder.path().to_owned() };
        run(&args).expect("an empty folder");
        run(&args).expect("the same files again");
        let page =
            headstart_study::workload::web::har::read(&folder.path().join("page.har"), None).expect("a HAR");
        assert_eq!((page.objects.len(), page.skipped.len()), (9, 0));
        let trace: crate::options::TraceFile =
            folder.path().join("drive.down").to_str().expect("UTF-8").parse().expect("a trace");
        let rate = trace.trace.mean_rate().as_bytes_per_sec() * 8;
        let expected = DRIVE_RATES.iter().sum::<u64>() * 1_000_000 / 30;
        assert!(rate.abs_diff(expected) < expected / 100, "{rate} {expected}");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        for (name, link) in [("leo", &LEO), ("5g", &FIFTH)] {
            let rates: crate::options::TraceFile = path(&format!("{name}.csv")).parse().expect("rates");
            let mean = rates.trace.mean_rate().as_bits_per_sec() as f64 / 1e6;
            assert!((link.rates.0 as f64..link.rates.1 as f64).contains(&mean), "{name}: {mean} Mbit/s");
            let delays: crate::options::DelayFile = path(&format!("{name}.delay")).parse().expect("delays");
            assert_eq!((rates.trace.period(), delays.period()), (Span::from_secs(60), Span::from_secs(60)));
        }
        std::fs::write(folder.path().join("page.har"), "mine").expect("it can be written");
        let refused = run(&args).expect_err("another file").to_string();
        assert!(refused.contains("page.har") && refused.contains("expected"), "{refused}");
    }
}

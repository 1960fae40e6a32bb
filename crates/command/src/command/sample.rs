//! `headstart generate examples`: a small site, the page as a browser would save it, and
//! traces of three kinds of links, to try the commands on.
//!
//! All of it is made here, and the same on any machine.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;

use super::terminal::print;
use headstart_report::errors::Refuse as _;
use headstart_study::options::example_links::{LINKS, draws};

/// Options of `examples`.
#[derive(Args, Debug)]
pub struct ExamplesArgs {
    /// Folder for site/, page.har, drive.down, and leo, 5g and outage each as .csv and .delay
    #[arg(default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

struct File {
    name: &'static str,
    mime: &'static str,
    text: String,
}

/// Writes the example files; one that is there and differs is left alone.
///
/// # Errors
/// If the folder cannot be written, or holds other files of these names.
pub fn run(args: &ExamplesArgs) -> Result<()> {
    let site = site();
    let mut all: Vec<(String, String)> =
        site.iter().map(|file| (format!("site/{}", file.name), file.text.clone())).collect();
    all.push(("page.har".to_owned(), har(&site)));
    all.push(("drive.down".to_owned(), trace()));
    for link in &LINKS {
        let (rates, delays) = link.traces();
        all.extend([(format!("{}.csv", link.name), rates), (format!("{}.delay", link.name), delays)]);
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
         link whose rate changes; {folder}/leo.csv and leo.delay, 5g and outage likewise: rates and delays of a minute by \
         satellite, by mobile network, and with three seconds of nothing (--trace, --delay-trace)\n",
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
        let trace: headstart_study::options::TraceFile =
            folder.path().join("drive.down").to_str().expect("UTF-8").parse().expect("a trace");
        let rate = trace.trace.mean_rate().as_bytes_per_sec() * 8;
        let expected = DRIVE_RATES.iter().sum::<u64>() * 1_000_000 / 30;
        assert!(rate.abs_diff(expected) < expected / 100, "{rate} {expected}");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        for link in LINKS.iter().filter(|link| link.rates.0 < link.rates.1) {
            let name = link.name;
            let rates: headstart_study::options::TraceFile =
                path(&format!("{name}.csv")).parse().expect("rates");
            let mean = rates.trace.mean_rate().as_bits_per_sec() as f64 / 1e6;
            assert!((link.rates.0 as f64..link.rates.1 as f64).contains(&mean), "{name}: {mean} Mbit/s");
            let delays: headstart_study::options::DelayFile =
                path(&format!("{name}.delay")).parse().expect("delays");
            assert_eq!((rates.trace.period(), delays.period()), (Span::from_secs(60), Span::from_secs(60)));
        }
        std::fs::write(folder.path().join("page.har"), "mine").expect("it can be written");
        let refused = run(&args).expect_err("another file").to_string();
        assert!(refused.contains("page.har") && refused.contains("expected"), "{refused}");
    }
}

//! README and docs/commands.md: every command in them runs, with files that the project makes, and
//! their sample is the command's output. CONTRIBUTING: its experiment runs.

#![expect(clippy::disallowed_methods, reason = "a real server, real time")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SAMPLE: &str = "race --schemes iw10,iw32,jump-start,halfback,wise-start,careful-resume,headstart --size mixed \
     --duration 60s --repeats 8 --out sample";
const PICTURE: &str = "trace halfback --out one";
/// Pages of which commands are run, the first one first.
const PAGES: [&str; 2] = ["README.md", "docs/commands.md"];
/// The main job and the tests come first; what is installed is the program that the pages need.
const FIRST: [&str; 3] = [
    "cargo run --release -- race",
    "./ci.sh",
    "cargo install --locked --profile dist --path crates/command --features full",
];
/// Opening of the sample in each page.
const BEGIN: &str = "<!-- sample: ";
const TEXT: &str = "```text\n";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be made");
    folder
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).expect(name)
}

/// The commands of a page, without their explanations.
fn typed(name: &str) -> Vec<String> {
    let text = page(name);
    let lines =
        text.split("```sh\n").skip(1).flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned()).collect()
}

/// Commands of the program; a build in front of one is this test's own.
fn commands() -> Vec<String> {
    let typed = PAGES.iter().flat_map(|name| typed(name));
    let typed = typed.map(|line| line.replace("cargo run --release -- ", "headstart "));
    typed.filter(|line| line.starts_with("headstart ")).collect()
}

fn shell(folder: &Path, line: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_headstart")).parent().expect("a folder");
    let mut command = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(["-c", line]).current_dir(folder).env("PATH", format!("{}:{path}", program.display()));
    command.env("COLUMNS", "100").env("NO_COLOR", "1").env("XDG_STATE_HOME", folder);
    command
}

fn run(folder: &Path, line: &str) -> Output {
    let output = shell(folder, line).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn is_built(line: &str) -> bool {
    let needs_all = ["demo", "serve", "get", "link", "measure"];
    let word = line.split(' ').nth(1).unwrap_or_default();
    cfg!(feature = "full")
        || !(needs_all.contains(&word) || line.contains("--transport quic") || line.contains("--in emulator"))
}

/// A newcomer's first command does the main job, and the second one runs the tests.
#[test]
fn the_readme_begins_with_the_main_job_and_the_tests() {
    assert_eq!(typed("README.md"), FIRST);
    assert!(page(".ci/run").lines().any(|line| line == format!("exec {}", FIRST[1])), ".ci/run");
}

/// Documents below a folder, except in builds.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && name != "target" && !name.starts_with('.') {
            documents(&entry, found);
        } else if name.ends_with(".md") {
            found.push(entry);
        }
    }
}

/// Lines of blocks and spans of code, without explanations behind ` #`.
fn code(text: &str) -> Vec<String> {
    let mut found = vec![];
    let (mut fence, mut before) = (None, "");
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(kind) };
        } else if fence.is_some_and(|kind| kind == "sh")
            || fence.is_none() && line.starts_with("    ") && before.is_empty()
        {
            found.push(line.split(" #").next().unwrap_or_default().trim().to_owned());
            continue;
        }
        before = line.trim();
    }
    // A span may go on in the next line.
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    for paragraph in prose.iter().flat_map(|part| part.split("\n\n")) {
        found.extend(paragraph.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")));
    }
    found
}

/// Words of each call of the program in a line of code, up to `--` or the line's next command.
fn calls(line: &str) -> Vec<Vec<&str>> {
    const NEXT: [&str; 8] = ["--", "|", ";", "&", "&&", ">", "sudo", "time"];
    let words: Vec<&str> = line.split_whitespace().collect();
    let begins = |at: usize| {
        let before = at.checked_sub(1).map(|before| words[before]);
        words[at].starts_with("$(") || before.is_none_or(|it| NEXT.contains(&it) || it.starts_with('-'))
    };
    let is_program = |word: &str| word == "headstart" || word.ends_with("/headstart") && !word.contains('=');
    let bare = |word: &'_ str| word.trim_start_matches("$(").to_owned();
    let starts = (0..words.len()).filter(|at| begins(*at) && is_program(&bare(words[*at])));
    let ends = |word: &&str| !NEXT.contains(word);
    starts.map(|at| words[at + 1..].iter().copied().take_while(ends).collect()).collect()
}

/// Output of `--help` of a command; `None` for one that is not built.
fn help(folder: &Path, command: &str) -> Option<String> {
    let output = shell(folder, &format!("headstart {command} --help")).output().expect("a shell");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("UTF-8"))
}

fn has_option(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option)
}

/// Commands that a help lists, below whatever heading.
fn listed(help: &str) -> impl Iterator<Item = &str> {
    let (_, list) = help.split_once("\nUsage: ").unwrap_or_default();
    let lines = list.split("\nOptions:").next().unwrap_or_default().lines().skip(1);
    let words = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()) && *word != "help")
}

/// The help of every command by its words, as `tcp history show`.
fn helps(folder: &Path) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let text = help(folder, &command);
        let below = text.iter().flat_map(|text| listed(text));
        open.extend(below.map(|name| format!("{command} {name}").trim().to_owned()));
        found.insert(command, text);
    }
    found.remove("");
    found
}

/// Text of programs of the repository whose options documents name.
fn programs(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            programs(&entry, text);
        } else {
            text.push_str(&fs::read_to_string(entry).unwrap_or_default());
        }
    }
}

#[test]
fn documents_name_commands_and_options_that_exist() {
    let known = helps(&folder("documents"));
    let is_whole = known.values().all(Option::is_some);
    let mut others: String = known.values().flatten().map(String::as_str).collect();
    for folder in
        ["tools", "benches/peers", "crates/transports/web/examples", "crates/command/tests/agreement"]
    {
        programs(&Path::new(ROOT).join(folder), &mut others);
    }
    // Options that a reader adds, that documents abbreviate, and cargo's.
    let made = ["--gaps", "--up-", "--profile", "--h1"];
    let mut pages = vec![];
    documents(Path::new(ROOT), &mut pages);
    let (mut faults, mut options) = (vec![], 0);
    for page in pages {
        let text = fs::read_to_string(&page).expect("a document");
        for line in code(&text) {
            for call in calls(&line) {
                // The longest name is the command's: `tcp` has commands of its own.
                let names = (1..=3.min(call.len())).rev().map(|count| call[..count].join(" "));
                let Some(help) = names.into_iter().find_map(|name| known.get(&name)) else {
                    let is_word = |word: &&&str| word.starts_with(|c: char| c.is_ascii_lowercase());
                    if let Some(word) = call.first().filter(is_word) {
                        faults.push(format!("{}: found the command `{word}`: {line}", page.display()));
                    }
                    continue;
                };
                for option in call.iter().filter(|word| word.starts_with("--")) {
                    let name = option
                        .split('=')
                        .next()
                        .unwrap_or_default()
                        .trim_end_matches([',', '.', ':', ']', ')']);
                    options += 1;
                    if !made.contains(&name) && help.as_ref().is_some_and(|help| !has_option(help, name)) {
                        faults.push(format!("{}: found `{name}`: {line}", page.display()));
                    }
                }
            }
            let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            let is_option = name.starts_with("--") && name.len() > 2 && !made.contains(&name.as_str());
            if is_whole
                && is_option
                && !has_option(&others, &name)
                && !others.contains(&format!("\"{}\"", &name[2..]))
            {
                faults.push(format!("{}: found `{name}`, an option of no command", page.display()));
            }
        }
    }
    assert!(options > 200, "{options}");
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn calls_and_options_of_a_text_are_found() {
    let text = "`headstart race --rate\n5mbit`\n\n```sh\na | headstart get --hint 1 -- headstart  # headstart b\n```\n\n    headstart link --udp\n";
    let found: Vec<String> =
        code(text).iter().flat_map(|line| calls(line)).map(|call| call.join(" ")).collect();
    assert_eq!(found, ["get --hint 1", "", "link --udp", "race --rate 5mbit"]);
    assert_eq!(
        calls("x $(headstart measure a) iw10 headstart b"),
        [["measure", "a)", "iw10", "headstart", "b"]]
    );
    assert_eq!(calls("H=a/headstart tool").len(), 0);
    assert!(has_option("  --rate <RATE>, or --up-rate=1", "--rate"));
    assert!(!has_option("  --up-rate <RATE>", "--rate"));
}

#[test]
fn every_command_of_the_readme_runs() {
    let folder = folder("commands");
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    let mut server = None;
    for line in commands.iter().filter(|line| is_built(line)) {
        if line.starts_with("headstart serve ") {
            // It runs until it is ended; the next command waits for it.
            server = Some(shell(&folder, &format!("exec {line}")).spawn().expect("a shell"));
        } else if line.starts_with("headstart get ") {
            let tries = (0..50).find(|_| {
                std::thread::sleep(std::time::Duration::from_millis(200));
                shell(&folder, line).output().expect("a shell").status.success()
            });
            assert!(tries.is_some(), "{line}: no answer");
        } else {
            run(&folder, line);
        }
    }
    if let Some(mut server) = server {
        server.kill().expect("it runs");
        server.wait().expect("it ends");
    }
}

/// The commit is another one wherever the sample is made.
fn without_version(text: &str) -> String {
    let version = String::from_utf8(
        Command::new(env!("CARGO_BIN_EXE_headstart")).arg("--version").output().expect("it starts").stdout,
    );
    let version = version.expect("UTF-8");
    text.replace(version.trim().trim_start_matches("headstart "), env!("CARGO_PKG_VERSION"))
}

#[test]
fn the_sample_output_of_the_readme_is_current() {
    let folder = folder("sample");
    let output = run(&folder, &format!("headstart {SAMPLE}"));
    let printed = String::from_utf8(output.stdout).expect("tables are UTF-8");
    let (table, _) = printed.split_once("\nReport: ").expect("where the report is");
    run(&folder, &format!("headstart {PICTURE}"));
    let made = |name: &str| without_version(&fs::read_to_string(folder.join(name)).expect("it was written"));
    let files =
        [("report.html", made("sample/report.html")), ("time-sequence.svg", made("one/time-sequence.svg"))];
    // README has the table alone: what it says goes on in the other page.
    let (rows, _) = table.split_once("Verdict: ").expect("a verdict below the table");
    let kept = Path::new(ROOT).join("docs/sample");
    let writes = std::env::var_os("HEADSTART_WRITE_DOCS").is_some();
    let how = "HEADSTART_WRITE_DOCS=1 cargo test -p headstart --test readme sample writes it anew";
    for (name, expected) in PAGES.into_iter().zip([rows, table]) {
        let text = page(name);
        let found_text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            name != "README.md"
                || found_text.contains(&format!("`headstart {}`", SAMPLE.replace(" --out sample", "")))
        );
        let begin = text.find(BEGIN).expect("the comment before the sample");
        let begin = begin + text[begin..].find(TEXT).expect("the beginning of the sample") + TEXT.len();
        let end = begin + text[begin..].find("```\n").expect("its end");
        if writes {
            let text = format!("{}{expected}{}", &text[..begin], &text[end..]);
            fs::write(Path::new(ROOT).join(name), text).expect("a page can be written");
        } else {
            assert_eq!(&text[begin..end], expected, "{name}: {how}");
        }
    }
    if writes {
        fs::create_dir_all(&kept).expect("docs/sample");
        for (name, made) in &files {
            fs::write(kept.join(name), made).expect("docs/sample can be written");
        }
        return;
    }
    for (name, made) in &files {
        let found = fs::read_to_string(kept.join(name)).expect("docs/sample");
        assert!(found == *made, "docs/sample/{name} is not what the command gives: {how}");
    }
}

#[test]
fn the_experiment_of_the_guide_runs_and_its_claim_holds() {
    let text = fs::read_to_string(Path::new(ROOT).join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let blocks: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let [paper, plan, claims] = blocks[..] else { panic!("expected three files: {blocks:?}") };
    let folder = folder("guide");
    fs::create_dir_all(folder.join("mine/sizes")).expect("a folder");
    for (name, text) in [
        ("paper.toml", paper),
        ("sizes/plan.toml", plan),
        ("sizes/claims.toml", claims),
        ("sizes/notes.md", "No differences.\n"),
    ] {
        fs::write(folder.join("mine").join(name), text).expect("a file");
    }
    let output = run(&folder, "headstart reproduce ./mine --check");
    let found_text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(found_text.contains("Of 1 claims of the paper 1 hold"), "{found_text}");
    assert!(folder.join("headstart-reproduce/mine/report.html").is_file(), "{found_text}");
}

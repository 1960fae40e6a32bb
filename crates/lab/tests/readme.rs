//! README: every command in it runs, with files that the project makes, and its sample is the
//! command's output. CONTRIBUTING: its experiment runs.

#![expect(clippy::disallowed_methods, reason = "a real server, real time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SAMPLE: &str = "race --schemes iw10,iw32,jump-start,halfback,wise-start,careful-resume,headstart --size mixed \
     --duration 60s --repeats 8 --out sample";
const PICTURE: &str = "trace halfback --out one";
const BEGIN: &str = "writes the table, the picture and docs/sample/report.html -->\n```text\n";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be made");
    folder
}

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README.md")
}

/// The commands of README that begin with the program's name, without their explanations.
fn commands() -> Vec<String> {
    let text = readme();
    let lines =
        text.split("```sh\n").skip(1).flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let typed = lines.map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
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
    let needs_all = ["demo", "serve", "get", "link", "downlink", "completions", "man"];
    let word = line.split(' ').nth(1).unwrap_or_default();
    cfg!(feature = "full")
        || !(needs_all.contains(&word) || line.contains("--transport quic") || line.contains("--in emulator"))
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
    let text = readme();
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the sample");
    let (found, after) = rest.split_once("```\n").expect("its end");
    let kept = Path::new(ROOT).join("docs/sample");
    if std::env::var_os("HEADSTART_WRITE_DOCS").is_some() {
        fs::create_dir_all(&kept).expect("docs/sample");
        for (name, made) in &files {
            fs::write(kept.join(name), made).expect("docs/sample can be written");
        }
        let text = format!("{before}{BEGIN}{table}```\n{after}");
        return fs::write(Path::new(ROOT).join("README.md"), text).expect("README.md can be written");
    }
    let how = "HEADSTART_WRITE_DOCS=1 cargo test -p headstart --test readme sample writes it anew";
    assert_eq!(found, table, "README.md: {how}");
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
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("Of 1 claims of the paper 1 hold"), "{said}");
    assert!(folder.join("headstart-reproduce/mine/report.html").is_file(), "{said}");
}

//! Judges in virtual time: `interop/quic-go/transfer_test.go`, `interop/gvisor/transfer_test.go`
//! and `interop/s2n-quic/examples/transfers.rs`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart_net::{Element as _, ElementPlan, LinkPlan, Packet, PushResult};
use headstart_sim::Seed;
use headstart_study::setup::Setup;
use headstart_units::{Bytes, Time};

use crate::compare::{Case, Found, PATHS, Verdict};
use crate::model::{self, Rounds, Side};

/// A stack that shares no code with ours, and our own set up as it is.
pub struct Judge {
    pub name: &'static str,
    /// Folder of its program.
    folder: &'static str,
    pub controllers: &'static [&'static str],
    /// Our side of a case.
    pub model: fn(&Case, seed: u64) -> Result<Side, String>,
    /// True if a short case agrees; `None` if it is not judged.
    pub agrees: fn(&Case, &Verdict) -> Option<bool>,
    /// Equal runs may differ: it draws from the system's randomness.
    is_random: bool,
    language: Language,
}

enum Language {
    /// In which sources other text is compiled.
    Go {
        changes: &'static [Change],
    },
    Rust,
}

/// File of a module, text that is there once, and the text in its place.
type Change = (&'static str, &'static str, &'static str);

pub const QUIC_GO: Judge = Judge {
    name: "quic-go",
    folder: "quic-go",
    // quic-go has no other: Reno, from 32 packets.
    controllers: &["reno"],
    model: model::like_quic_go,
    agrees: |case, verdict| {
        let [completion, others @ ..] = verdict.agrees();
        // With so small a buffer equal runs of quic-go differ by more than the band.
        Some((completion || case.path == PATHS[4]) && others == [true; 3])
    },
    is_random: true,
    language: Language::Go { changes: &[] },
};

pub const S2N_QUIC: Judge = Judge {
    name: "s2n-quic",
    folder: "s2n-quic",
    controllers: &["cubic"],
    model: model::like_s2n_quic,
    agrees: |case, verdict| {
        let [completion, others @ ..] = verdict.agrees();
        // Elsewhere a packet decides on the round in which slow start ends, and at 100 Mbit/s on
        // all that follows: docs/records/s2n-quic.md.
        let is_whole = [PATHS[0], PATHS[4], PATHS[6]].contains(&case.path);
        let is_judged = !case.is_random() && case.path != PATHS[5];
        is_judged.then_some(completion && (others == [true; 3] || !is_whole))
    },
    is_random: false,
    language: Language::Rust,
};

/// With its faults mended, and as it is.
pub const GVISOR: [Judge; 2] = [
    Judge {
        name: "gVisor, mended",
        folder: "gvisor",
        controllers: &["reno", "cubic"],
        model: model::like_gvisor,
        agrees: |case, verdict| {
            let [completion, drops, queue, exit] = verdict.agrees();
            // HyStart leaves by a tie: docs/records/gvisor.md.
            let is_tie = case.controller == "cubic" && case.path == PATHS[6];
            Some(completion && drops && (queue && exit || is_tie))
        },
        is_random: false,
        language: Language::Go { changes: &MENDED },
    },
    Judge {
        name: "gVisor",
        folder: "gvisor",
        controllers: &["reno", "cubic"],
        model: model::like_gvisor,
        // Recovery is where its faults are.
        agrees: |case, verdict| {
            (!case.is_random() && verdict.drops.judge == 0.0).then_some(verdict.completion.agrees)
        },
        is_random: false,
        language: Language::Go { changes: &[] },
    },
];

macro_rules! netstack {
    ($file:literal) => {
        concat!("gvisor.dev/gvisor/pkg/tcpip/transport/tcp/", $file, ".go")
    };
}

/// Faults and choices of gVisor's TCP that ours does not have: docs/records/gvisor.md.
const MENDED: [Change; 8] = [
    (netstack!("sack_scoreboard"), "maxSACKBlocks = 100", "maxSACKBlocks = 1 << 20"),
    (
        netstack!("rack"),
        "snd.Outstanding += snd.pCount(seg, snd.MaxPayloadSize)",
        "snd.Outstanding += snd.pCount(seg, snd.MaxPayloadSize)
		if end := seg.sequenceNumber.Add(seg.logicalLen()) - 1; snd.FastRecovery.HighRxt.LessThan(end) {
			snd.FastRecovery.HighRxt = end
		}",
    ),
    (
        netstack!("rack"),
        "(seg.xmitTime == rc.XmitTime && rc.EndSequence.LessThan(endSeq)) {
			timeRemaining",
        "(seg.xmitTime == rc.XmitTime && endSeq.LessThan(rc.EndSequence)) {
			timeRemaining",
    ),
    (
        netstack!("reno"),
        "r.s.SndCwnd += r.s.SndCAAckCount / r.s.SndCwnd
		r.s.SndCAAckCount = r.s.SndCAAckCount % r.s.SndCwnd",
        "grown := r.s.SndCAAckCount / r.s.SndCwnd
		r.s.SndCAAckCount, r.s.SndCwnd = r.s.SndCAAckCount % r.s.SndCwnd, r.s.SndCwnd + grown",
    ),
    (netstack!("reno"), "// detected loss. Reduce our slow start threshold.", "r.s.SndCAAckCount = 0"),
    (netstack!("cubic"), "c.WEst = c.WMax*c.Beta", "c.WEst = float64(c.s.Ssthresh)"),
    (
        netstack!("cubic"),
        "// Make sure in the TCP friendly region CUBIC performs at least",
        "prior := max(c.WLastMax, float64(c.s.Ssthresh))
	if c.WEst > prior {
		c.WEst = prior + (c.WEst-prior)*(1.0+c.Beta)/(3.0*(1.0-c.Beta))
	}",
    ),
    (
        netstack!("cubic"),
        "int(math.Max(float64(c.s.SndCwnd)*c.Beta, 2.0))",
        "int(math.Round(math.Max(float64(c.s.SndCwnd)*c.Beta, 2.0)))",
    ),
];

/// Reason for which a judge gave no answer.
pub enum Failure {
    /// Go, its modules or crates are not to be had here.
    Missing(String),
    /// The program does not compile, or ended with an error.
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Missing(reason) | Self::Broken(reason)) = self;
        f.write_str(reason)
    }
}

fn ran(command: &mut Command, or: fn(String) -> Failure) -> Result<Output, Failure> {
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Missing(format!("{:?} is not installed", command.get_program())),
        _ => Failure::Broken(error.to_string()),
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Err(or(format!("{command:?}: {}", texts.concat().trim())))
}

impl Judge {
    fn repeats(&self, case: &Case) -> usize {
        if self.is_random { case.repeats() as usize } else { 1 }
    }

    /// The program, compiled.
    pub fn build(&self) -> Result<Command, Failure> {
        let mut source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop").join(self.folder);
        let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let Language::Go { changes } = self.language else {
            // ci.sh has its crates compiled there, in this profile.
            let built = built.with_file_name("interop").join(self.folder);
            ran(&mut tool(env!("CARGO"), &source, &["fetch", "--locked"]), Failure::Missing)?;
            let words = ["build", "--locked", "--example", "transfers", "--target-dir"];
            ran(tool(env!("CARGO"), &source, &words).arg(&built), Failure::Broken)?;
            return Ok(Command::new(built.join("debug/examples/transfers")));
        };
        ran(&mut tool("go", &source, &["mod", "download"]), Failure::Missing)?;
        if !changes.is_empty() {
            source = self.changed(&source, changes)?;
        }
        let program = built.join(format!("{}-transfers", self.folder));
        ran(tool("go", &source, &["test", "-c", "-o"]).arg(&program), Failure::Broken)?;
        let mut command = Command::new(program);
        command.args(["-test.run=^TestTransfers$", "-test.timeout=20m"]);
        // One thread: goroutines that are ready at the same instant run in the same order.
        command.env("GOMAXPROCS", "1");
        Ok(command)
    }

    /// A copy of the program with its modules, which are changed.
    fn changed(&self, source: &Path, changes: &[Change]) -> Result<PathBuf, Failure> {
        let broken = |error: std::io::Error| Failure::Broken(error.to_string());
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.folder);
        std::fs::create_dir_all(&copy).map_err(broken)?;
        for file in ["go.mod", "go.sum", "transfer_test.go"] {
            std::fs::copy(source.join(file), copy.join(file)).map_err(broken)?;
        }
        ran(&mut tool("go", &copy, &["mod", "vendor"]), Failure::Broken)?;
        for (file, from, to) in changes {
            let file = copy.join("vendor").join(file);
            let text = std::fs::read_to_string(&file).map_err(broken)?;
            if text.matches(from).count() != 1 {
                return Err(Failure::Broken(format!("{}: `{from}` is not there once", file.display())));
            }
            std::fs::remove_file(&file).map_err(broken)?;
            std::fs::write(&file, text.replace(from, to)).map_err(broken)?;
        }
        Ok(copy)
    }
}

fn tool(name: &str, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(words).current_dir(folder);
    // Build scripts depend on these of their own package: with the test's they would run again.
    for (name, _) in std::env::vars() {
        if name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// A packet of which only its place in the order matters.
#[derive(Clone, Debug)]
struct Numbered;

impl Packet for Numbered {
    fn size(&self) -> Bytes {
        Bytes::ZERO
    }
    fn is_ecn_capable(&self) -> bool {
        false
    }
    fn mark_congestion_experienced(&mut self) {}
}

/// More packets than a transfer has.
const PACKETS: usize = 20_000;

/// A transfer as the program reads it. Of the packets that leave the link the same ones are lost as
/// in the model, as long as both send the same.
fn line(case: &Case, setup: &Setup) -> Option<String> {
    let plan = setup.path.unchecked_plan(&headstart_study::options::UpOptions::default());
    let [ElementPlan::Link(LinkPlan { rate, delay, limit, .. }), rest @ ..] = &plan.down[..] else {
        return None;
    };
    let mut lost = String::from("-");
    if !rest.is_empty() {
        let elements = plan.elements(Seed(setup.run.seed));
        let placed = elements.iter().find(|placed| matches!(placed.plan, ElementPlan::Loss(_)))?;
        let mut loss = placed.plan.build::<Numbered>(placed.seed);
        let mut is_lost = || matches!(loss.push(Time::ZERO, Numbered), PushResult::Dropped(..));
        let numbers = (0..PACKETS).filter(|_| is_lost()).map(|number| number.to_string());
        lost = numbers.collect::<Vec<_>>().join(",");
    }
    let most = |value: u64| value.min(u64::from(u32::MAX));
    Some(format!(
        "{} {} {} {} {} {} {lost}",
        case.controller,
        rate.mean().as_bits_per_sec(),
        delay.as_nanos() / 500,
        most(limit.packets),
        most(limit.bytes.get()),
        case.bytes,
    ))
}

/// The transfers, in this order. quic-go draws connection IDs, and packet numbers that it leaves
/// out, from the system's randomness. So of several runs it is the one of the middle completion.
pub fn run(
    judge: &Judge,
    mut command: Command,
    transfers: &[(Case, Setup)],
) -> Result<Vec<(Found, Rounds)>, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::Broken(error.to_string()))?;
    let [orders, found] = ["transfers", "found"].map(|name| folder.path().join(name));
    let mut lines = String::new();
    for (case, setup) in transfers {
        let line = line(case, setup).ok_or_else(|| Failure::Broken(format!("{case:?}: not carried")))?;
        lines += &format!("{line}\n").repeat(judge.repeats(case));
    }
    std::fs::write(&orders, lines).map_err(|error| Failure::Broken(error.to_string()))?;
    command.current_dir(folder.path()).env("TRANSFERS", &orders).env("FOUND", &found);
    ran(&mut command, Failure::Broken)?;
    let text = std::fs::read_to_string(&found).map_err(|error| Failure::Broken(error.to_string()))?;
    let mut runs = text.lines().map(read);
    let middle = |(case, _): &(Case, Setup)| {
        let mut runs = runs.by_ref().take(judge.repeats(case)).collect::<Option<Vec<_>>>()?;
        runs.sort_by(|a, b| a.0.completion_ms.total_cmp(&b.0.completion_ms));
        runs.get(runs.len() / 2).cloned()
    };
    transfers.iter().map(middle).collect::<Option<_>>().ok_or_else(|| Failure::Broken(text.clone()))
}

/// `COMPLETION,DROPS,PEAK,EXIT,ROUNDS`; a round is `PACKETS:WINDOW`.
fn read(line: &str) -> Option<(Found, Rounds)> {
    let [completion, drops, peak, exit, rounds] = line.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    let found = Found {
        completion_ms: completion.parse().ok()?,
        drops: drops.parse().ok()?,
        peak_queue: peak.parse().ok()?,
        exit_ms: if exit == "-" { None } else { Some(exit.parse().ok()?) },
        is_valid: true,
    };
    let round = |round: &str| {
        let (packets, window) = round.split_once(':')?;
        Some((packets.parse().ok()?, window.parse().ok()?))
    };
    Some((found, rounds.split(' ').map(round).collect::<Option<_>>()?))
}

//! The package is tested from Python, against the command that is built from the same sources with
//! the same features: `pytest python/tests`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use headstart_host::not_run;

/// Packages that the tests need.
const PACKAGES: [&str; 14] = [
    "auditwheel",
    "dask[distributed]",
    "gymnasium",
    "ipykernel",
    "matplotlib",
    "maturin>=1.9,<2",
    "mypy==2.4.1",
    "nbclient",
    "pandas",
    "polars",
    "pyarrow",
    "pytest",
    "tqdm",
    "wheel",
];
/// One that is not built for every version of Python: without it its test says that it was not run.
const RAY: &str = "ray";

/// The oldest systems that the wheel is for (PEP 600): glibc 2.34 of 2021.
const PLATFORM: &str = "manylinux_2_34";

/// Folder of the programs that this build makes.
fn built() -> PathBuf {
    let this = std::env::current_exe().expect("a path");
    this.ancestors().nth(2).expect("in target/PROFILE/deps").to_owned()
}

fn run(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// An interpreter with the packages that the tests need, kept with the build.
fn interpreter() -> Option<PathBuf> {
    let home = built().parent()?.join("tools/python-tests");
    let python = home.join("bin/python");
    let has = |packages: &[&str]| {
        let modules: Vec<&str> =
            packages.iter().map(|name| name.split(['[', '=', '>']).next().unwrap_or(name)).collect();
        run(Command::new(&python).args(["-c", &format!("import {}", modules.join(", "))]))
    };
    let install = |packages: &[&str]| {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).args(packages)) && has(packages)
    };
    let is_ready =
        has(&PACKAGES) || run(Command::new("python3").args(["-m", "venv"]).arg(&home)) && install(&PACKAGES);
    if is_ready && !has(&[RAY]) {
        install(&[RAY]);
    }
    is_ready.then_some(python)
}

/// A module as a program, at the root of the sources.
fn python_module(python: &Path, source: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", name]).current_dir(source.join("..")).stdout(Stdio::null());
    command
}

/// The files of which this build made the library, as the compiler lists them, that the source
/// distribution lacks.
fn missing_in_sdist(python: &Path, source: &Path, built: &Path, folder: &Path) -> Vec<String> {
    let packed = folder.join("sdist");
    let made = run(python_module(python, source, "maturin").args(["sdist", "--out"]).arg(&packed));
    assert!(made, "the source distribution: see above");
    let mut files = std::fs::read_dir(&packed).expect("readable").map(|file| file.expect("a file").path());
    let archive = files.next().expect("one");
    let tar = Command::new("tar").arg("tzf").arg(&archive).output().expect("tar");
    let listed = String::from_utf8_lossy(&tar.stdout).into_owned();
    // headstart-VERSION/PATH
    let listed: std::collections::BTreeSet<&str> =
        listed.lines().filter_map(|line| Some(line.split_once('/')?.1)).collect();
    // Cargo reads the manifests of all crates, those for features that are off included.
    let opened = folder.join("opened");
    std::fs::create_dir_all(&opened).expect("a folder");
    let unpacked = ["xzf", archive.to_str().expect("text"), "--strip-components=1"];
    assert!(run(Command::new("tar").args(unpacked).current_dir(&opened)), "tar: see above");
    let read = ["metadata", "--quiet", "--no-deps", "--offline", "--format-version=1"];
    let manifests = run(Command::new("cargo").args(read).current_dir(&opened).stdout(Stdio::null()));
    assert!(manifests, "the manifests of the source distribution: see above");
    let root = source.join("..").canonicalize().expect("the root");
    let mut own = std::collections::BTreeSet::new();
    for file in std::fs::read_dir(built.join("deps")).expect("readable") {
        let file = file.expect("a file").path();
        if file.extension().is_none_or(|end| end != "d") {
            continue;
        }
        // `TARGET: SOURCES`; a library's target is deps/libNAME.rlib, a test's deps/NAME.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let Some((_, sources)) = text.lines().find_map(|line| {
            line.split_once(": ").filter(|(target, _)| target.ends_with(".rlib") && target.contains("/lib"))
        }) else {
            continue;
        };
        let files = sources.split_whitespace().filter_map(|path| root.join(path).canonicalize().ok());
        let files: Vec<String> = files
            .filter(|path| path.is_file() && !path.starts_with(root.join("target")))
            .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_str()?.to_owned()))
            .collect();
        let krate = files.iter().find_map(|path| path.split_once("/src/"));
        if krate.is_some_and(|(folder, _)| listed.contains(format!("{folder}/Cargo.toml").as_str())) {
            own.extend(files);
        }
    }
    assert!(own.len() > 100, "{} files of {}", own.len(), root.display());
    own.into_iter().filter(|path| !listed.contains(path.as_str())).collect()
}

/// Packs the wheel as maturin describes it, with the library of this build, and installs it into
/// `site`. maturin's own build would compile everything again.
fn install_wheel(python: &Path, source: &Path, built: &Path, folder: &Path, site: &Path) -> bool {
    let contents = folder.join("wheel");
    let package = contents.join("headstart");
    std::fs::create_dir_all(&package).expect("a folder");
    for file in std::fs::read_dir(source.join("headstart")).expect("the package's files") {
        let file = file.expect("a file").path();
        if file.is_file() {
            std::fs::copy(&file, package.join(file.file_name().expect("a name"))).expect("copied");
        }
    }
    std::fs::copy(built.join("deps/lib_native.so"), package.join("_native.abi3.so")).expect("copied");
    let module = |name: &str| python_module(python, source, name);
    let describe = ["pep517", "write-dist-info", "--metadata-directory"];
    let is_packed = run(module("maturin").args(describe).arg(&contents).arg("--interpreter").arg(python))
        && run(module("wheel").arg("pack").arg(&contents).arg("--dest-dir").arg(folder));
    let wheel = || {
        let mut files = std::fs::read_dir(folder).expect("readable").map(|file| file.expect("a file").path());
        files.find(|file| file.extension().is_some_and(|end| end == "whl"))
    };
    let is_tagged = is_packed
        && wheel().is_some_and(|wheel| {
            let tag = format!("{PLATFORM}_{}", std::env::consts::ARCH);
            is_of_platform(&mut module("auditwheel"), &wheel)
                && run(module("wheel").args(["tags", "--remove", "--platform-tag", &tag]).arg(wheel))
        });
    let install =
        ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target"];
    is_tagged
        && wheel().is_some_and(|wheel| {
            run(module("pip").args(install).arg(site).arg(&wheel)) && runs_by_itself(&wheel, folder)
        })
}

/// True if the library of the wheel needs no newer system than [`PLATFORM`]. A library that cargo
/// built names libpython as well, which maturin's does not, and that is left aside.
fn is_of_platform(audit: &mut Command, wheel: &Path) -> bool {
    let report = audit.stdout(Stdio::piped()).arg("show").arg(wheel).output().expect("auditwheel");
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    // manylinux_2_17 and the like are older: what runs there runs on this.
    let (system, rest) = PLATFORM.split_at("manylinux_2_".len());
    let version = |text: &str| text.split('_').next().and_then(|minor| minor.parse::<u32>().ok());
    let found = report.split(system).skip(1).filter_map(version).min();
    let is_it = found.is_some_and(|minor| Some(minor) <= version(rest));
    if !is_it {
        eprintln!("found a wheel that is not of {PLATFORM}: {report}");
    }
    is_it
}

/// Installs the wheel into a new environment without any other package, and uses it there.
fn runs_by_itself(wheel: &Path, folder: &Path) -> bool {
    let fresh = folder.join("fresh");
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"];
    let race = "import headstart; rows = list(headstart.race(schemes=['iw10', 'iw32'], duration='2 s', repeats=1)); \
                assert [row['scheme'] for row in rows] == ['iw10', 'iw32'], rows";
    let quiet = |command: &mut Command| run(command.current_dir(folder).stdout(Stdio::null()));
    quiet(Command::new("python3").args(["-m", "venv"]).arg(&fresh))
        && quiet(Command::new(fresh.join("bin/python")).args(install).arg(wheel))
        && quiet(Command::new(fresh.join("bin/python")).args(["-c", race]))
        && quiet(Command::new(fresh.join("bin/headstart")).args(["schemes", "halfback"]))
}

#[test]
fn the_package_gives_what_the_command_gives() {
    let (source, built) = (Path::new(env!("CARGO_MANIFEST_DIR")), built());
    let command = built.join("headstart");
    if !command.exists() {
        return not_run("the command was not built with it: cargo test --workspace");
    }
    let Some(python) = interpreter() else {
        return not_run("python3 with venv, or packages of PyPI (pyproject.toml, test), are not to be had");
    };
    let cache = built.join("../tools/mypy");
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    assert!(install_wheel(&python, source, &built, folder.path(), &site), "the wheel: see above");
    let missing = missing_in_sdist(&python, source, &built, folder.path());
    assert_eq!(missing, [""; 0], "the source distribution would not build");
    let passes = run(Command::new(&python)
        .args(["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"])
        .arg(source.join("tests"))
        .current_dir(&site)
        .env("MYPY_CACHE_DIR", &cache)
        .env("HEADSTART", command));
    assert!(passes, "pytest fails: see above");

    // The stub has the names and signatures of the compiled part, and the package keeps its types.
    let settings = source.join("../pyproject.toml");
    let checks = |module: &str, option: &str, checked: &str| {
        run(Command::new(&python)
            .args(["-m", module, option])
            .arg(&settings)
            .arg(checked)
            .current_dir(&site)
            .env("MYPY_CACHE_DIR", &cache))
    };
    assert!(checks("mypy", "--config-file", "headstart"), "mypy: see above");
    assert!(checks("mypy.stubtest", "--mypy-config-file", "headstart._native"), "stubtest: see above");
}

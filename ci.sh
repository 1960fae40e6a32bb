#!/usr/bin/env bash
# All of continuous integration, also for a desk: formatting, lints, documentation, tests, race.
set -euo pipefail
cd "$(dirname "$0")"

# A single build gains nothing from incremental compilation. At a desk, set CARGO_INCREMENTAL=1.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
# As tests have it: macros and build scripts are compiled once for lints and tests.
export CARGO_PROFILE_DEV_DEBUG=false

step() { # TITLE: printed with the seconds since the beginning, and the processor time of what has ended
    times >"$out/times"
    printf '\n== %s (after %d s; processor time: %s)\n' "$1" "$SECONDS" "$(tail -n 1 "$out/times")"
}

out=$(mktemp -d)
background=
end() {
    [ -z "$background" ] || kill -- "-$background" 2>/dev/null || true
    rm -rf "$out"
}
trap end EXIT

if ! command -v cargo >/dev/null; then
    echo "ci.sh: cargo is missing: install Rust 1.89 or newer with rustfmt and clippy" >&2
    exit 1
fi

tools=$PWD/target/tools
have_python_tool() { # COMMAND PACKAGE==VERSION
    [ -x "$tools/bin/$1" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check "$2"; }
}

have_packages() { # NAMES: Debian packages, where this is root on Debian; what is missing afterwards is reported by what needs it
    dpkg -s "$@" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null || true
    fi
}

step "dependencies: licences, sources, duplicates, minimum Rust version"
./tools/dependencies.py
if command -v cargo-deny >/dev/null; then
    cargo deny --offline --log-level error check licenses bans sources
else
    echo "cargo deny: NOT RUN, it is not installed; tools/dependencies.py has checked the same deny.toml"
fi
step "spelling"
have_python_tool typos typos==1.52.0
"$tools/bin/typos"
step "language of comments and documents, and of the newest commits"
./tools/prose.py
./tools/documents.py
./tools/history.py
step "formatting"
cargo fmt --all -- --check
# Files that a macro lists, cargo does not find.
rustfmt --check --edition 2024 crates/startup/src/scheme/*.rs
# The loader of `headstart tcp` compiles libbpf; its tests need root, nginx and curl, those of a
# fleet's history a server. Missing packages are installed where that is possible. Everything is
# compiled once, with all features.
have_packages libelf-dev zlib1g-dev pkg-config gcc nginx-light curl iproute2 clang llvm libbpf-dev bpftool procps redis-server prometheus
# The runtime of fuzz targets; its package has clang's version in its name.
have_packages "libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d. -f1)-dev"
# As udev has it everywhere: tests put programs that are not root behind a path. Elsewhere they are
# reported as not run.
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && [ -c /dev/net/tun ]; then chmod 0666 /dev/net/tun; fi
features=headstart/full
tcp="NOT RUN: Linux TCP: the headers of libelf and zlib are not installed"
if pkg-config --exists libelf zlib; then
    features+=,headstart/tcp
    tcp=
fi
everything=target/debug/headstart
# Checks that only compute run beside those that mostly wait for timers and sockets. The idle
# scheduling class leaves the latter their timing: a task of the normal class preempts one of this
# class at once. Tests that measure time and had no good machine are repeated at the end, alone.
# The output is shown when the last has ended.
compute() {
    chrt --idle --pid 0 "$BASHPID"
    # Foreign stacks take long to build, and the main sequence needs them first.
    step "foreign QUIC stacks"
    ./interop/run.sh --prepare
    step "units and startup can be built without the standard library"
    cargo build --quiet --manifest-path tools/no-std/Cargo.toml --target-dir target/no-std
    step "the command without features, whose other commands say how to get them"
    # Nearly as fast as a release, and built in a fraction of the time.
    cargo test --quiet --profile ci --test command_line
    headstart=target/ci/headstart
    step "the main job, and its speed limit of ten seconds"
    # Processor seconds, with a margin for slower machines; the real-time limit ends a run that
    # hangs.
    (ulimit -t 60 && exec timeout 3600 "$headstart" race --out "$out/race") >"$out/table"
    head -n 12 "$out/table"
    "$headstart" trace halfback --beside iw10,proactive --out "$out/trace" >"$out/traced"
    "$headstart" sweep --schemes iw10,halfback,wise-start --load 10%..70%:30% --rtt 20ms,60ms --duration 10s --repeats 3 \
        --out "$out/sweep" >"$out/swept"
    for paper in halfback quick-start fast-startup headstart; do
        reproduce "$headstart" "$paper"
    done
    step "fuzz: every reader of foreign input, for some seconds"
    ./tools/fuzz.sh 3
    step "a new scheme is one file and one line"
    ./tools/new-scheme.sh
    step "s2n-quic beside noq: the same decisions"
    cargo test --quiet --test suite --examples --manifest-path interop/s2n-quic/Cargo.toml --target-dir target/interop/s2n-quic
    until [ -e "$out/built" ]; do sleep 1; done
    # Figures over QUIC in virtual time are not in the command without features.
    reproduce "$everything" wisestart
    # Its schemes are replaced as well: most of these runs are there anyway.
    reproduce "$everything" blitzstart --evidence
}
reproduce() { # HEADSTART PAPER [OPTIONS]
    step "$2, figure by figure, cut down: every claim's outcome is the one on record"
    timeout 3600 "$1" reproduce "$2" --quick --check "${@:3}" --out "$out/reproduce" >"$out/claims-$2"
    tail -n 3 "$out/claims-$2"
    test -s "$out/reproduce/$2/report.html"
}
set -m
compute >"$out/background" 2>&1 &
background=$!
set +m

step "lints"
cargo clippy --quiet --workspace --all-targets --features "$features" -- -D warnings
# The command by itself is the one that a newcomer builds first. Its tests are the ones above.
for alone in "" quic; do
    cargo clippy --quiet --features "$alone" -- -D warnings
done
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --features "$features"
step "citations"
./tools/citations.sh
step "tests: building"
cargo test --quiet --workspace --features "$features" --no-run
touch "$out/built"
step "tests"
if ! cargo test --workspace --features "$features" --no-fail-fast 2>&1 | tee "$out/tests"; then
    printf '\nci.sh: failed tests:\n' >&2
    grep -E -A 2 '\.\.\. FAILED|panicked at' "$out/tests" | tail -n 60 >&2
    exit 1
fi
[ -z "$tcp" ] || echo "$tcp" | tee -a "$out/tests"
step "tests that could not run here"
# Programs in namespaces behind a path need root or user namespaces.
late='machine (did not keep|kept) |machine wakes nobody'
grep 'NOT RUN' "$out/tests" | grep -vE "$late" || echo "none"
step "alert rules and dashboard against a real Prometheus"
./tools/monitoring.py "$everything"
step "the demonstration: a real server, client and path"
timeout 1800 "$everything" demo --schemes iw10,halfback,wise-start --repeats 2 >"$out/demo"
cat "$out/demo"
step "interop: four foreign QUIC stacks and a browser fetch with every scheme"
HEADSTART=$everything timeout 3600 ./interop/run.sh "$out/matrix"
step "checks in the background"
if ! wait "$background"; then
    background=
    cat "$out/background"
    echo "ci.sh: the last check above failed" >&2
    exit 1
fi
background=
cat "$out/background"
step "tests for which the machine was too busy, with nothing beside them"
mapfile -t again < <(sed -nE "/$late/s/.*NOT RUN: (main: tcp: )?([^ ][^:]*(::[^: ]+)*): .*/\2/p" "$out/tests" | sort -u)
if [ ${#again[@]} = 0 ]; then
    echo "none"
else
    # Programs whose tests measure time.
    cargo test --workspace --features "$features" --lib --test copies --test spacing --test history --test tcp \
        -- "${again[@]}" >"$out/again" 2>&1 || { cat "$out/again"; exit 1; }
    for name in "${again[@]}"; do
        if grep -F 'NOT RUN' "$out/again" | grep -F "$name"; then continue; fi
        if grep -F "$name ... ok" "$out/again"; then continue; fi
        echo "NOT RUN: $name: it is in none of the programs that are run again"
    done
fi
step "reports of a race, a trace, a sweep and a paper in a browser"
have_packages chromium chromium-driver
./tools/report-browser.py "$out/race/report.html" "$out/trace/report.html" "$out/sweep/report.html" \
    "$out/reproduce/headstart/report.html"
./tools/explore-browser.py "$everything"

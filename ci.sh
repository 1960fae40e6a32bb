#!/usr/bin/env bash
# Continuous integration: `./ci.sh` is everything. `./ci.sh fast` is for a contributor's desk: it
# needs no root and no foreign programs, and takes at most ten minutes of two cores.
set -euo pipefail
cd "$(dirname "$0")"

# A single build gains nothing from incremental compilation. At a desk, set CARGO_INCREMENTAL=1.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
# As tests have it: macros and build scripts are compiled once for lints and tests.
export CARGO_PROFILE_DEV_DEBUG=false

step() { # TITLE: printed with the seconds since the beginning, and the processor time of what has ended
    local spent=$out/times.$BASHPID
    times >"$spent"
    printf '\n== %s (after %d s; processor time: %s)\n' "$1" "$SECONDS" "$(tail -n 1 "$spent")"
}

out=$(mktemp -d)
declare -A background=()
end() {
    local name
    for name in "${!background[@]}"; do kill -- "-${background[$name]}" 2>/dev/null || true; done
    rm -rf "$out"
}
trap end EXIT
start() { # FUNCTION: runs it beside the main sequence, in the idle scheduling class
    set -m
    {
        trap '[ $? = 0 ] || touch "$out/failed"' EXIT
        chrt --idle --pid 0 "$BASHPID"
        "$1"
    } >"$out/$1.log" 2>&1 &
    background[$1]=$!
    set +m
}
finish() { # FUNCTION: waits for it, and shows its output
    local result=0
    step "in the background: $1"
    wait "${background[$1]}" || result=$?
    unset "background[$1]"
    cat "$out/$1.log"
    [ $result = 0 ] || { echo "ci.sh: the last check above failed" >&2; exit 1; }
}

alone() { # NAME COMMAND...: is run at the end, with nothing beside it
    echo "ci.sh: FAILED beside other work, and is run again at the end: $1"
    echo "${@@Q}" >>"$out/alone"
}
measured() { # COMMAND...: a check that measures time, which other work can disturb
    "$@" || alone "$*" "$@"
}

if ! command -v cargo >/dev/null; then
    echo "ci.sh: cargo is missing: install Rust 1.89 or newer with rustfmt and clippy" >&2
    exit 1
fi

case ${1:-} in
    "") ;;
    fast)
        step "formatting, and the language of comments and documents"
        cargo fmt --all -- --check
        ./tools/prose.py
        ./tools/documents.py
        step "unit and property tests"
        cargo test --quiet --workspace --features headstart/full --lib --bins
        cargo test --quiet -p headstart-startup -p headstart-net -p headstart-sim --tests
        step "lints"
        cargo clippy --quiet --workspace --all-targets --features headstart/full -- -D warnings
        step "one paper, cut down: every claim's outcome is the one on record"
        cargo run --quiet --features full -- reproduce quick-start --quick --check --out "$out/reproduce"
        step "passed; \`./ci.sh\` runs everything"
        exit
        ;;
    *)
        echo "ci.sh: found \`$1\`, expected \`fast\` or nothing" >&2
        exit 2
        ;;
esac

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

# Checks that only compute run beside the tests, which mostly wait for timers and sockets. The idle
# scheduling class leaves the latter their timing: a task of the normal class preempts one of this
# class at once.
compute() {
    step "units and startup can be built without the standard library"
    cargo build --quiet --manifest-path tools/no-std/Cargo.toml --target-dir target/no-std
    step "the command without features, whose other commands say how to get them"
    cargo test --quiet --release --test command_line
    headstart=target/release/headstart
    step "the main job, and its speed limit of ten seconds"
    # Processor seconds, with a margin for slower machines; the real-time limit ends a run that
    # hangs.
    (ulimit -t 60 && exec timeout 3600 "$headstart" race --out "$out/race") >"$out/table"
    head -n 12 "$out/table"
    "$headstart" trace halfback --beside iw10,proactive --out "$out/trace" >"$out/traced"
    "$headstart" sweep --schemes iw10,halfback,wise-start --load 10%..70%:30% --rtt 20ms,60ms --duration 10s --repeats 3 \
        --out "$out/sweep" >"$out/swept"
    for paper in halfback quick-start fast-startup headstart rivals; do
        reproduce "$headstart" "$paper"
    done
    touch "$out/reports"
    step "fuzz: every reader of foreign input, for some seconds"
    ./tools/fuzz.sh 3
    await_tests
    # Before, these would hold the folder of compiled crates, for which the tests would wait.
    step "lints"
    cargo clippy --quiet --workspace --all-targets --features "$features" -- -D warnings
    # The command by itself is the one that a newcomer builds first. Its tests are the ones above.
    for alone in "" quic network; do
        cargo clippy --quiet --features "$alone" -- -D warnings
    done
    step "documentation, and its examples"
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --features "$features"
    cargo test --quiet --workspace --features "$features" --doc
    step "a new scheme is one file and one line, a new path element one file and some lines"
    ./tools/extend.sh
    # Figures over QUIC in virtual time are not in the command without features.
    reproduce "$everything" wisestart
    reproduce "$everything" blitzstart
}
foreign() {
    step "foreign QUIC stacks and a browser: installing and building"
    have_packages chromium chromium-driver firefox-esr
    ./interop/run.sh --prepare
    touch "$out/foreign"
    step "s2n-quic beside noq: the same decisions"
    cargo test --quiet --test suite --examples --manifest-path interop/s2n-quic/Cargo.toml --target-dir target/interop/s2n-quic
    await_tests
    step "the Python package"
    measured cargo test --quiet --workspace --features "$features" --test package
    step "explore, and reports of a race, a trace, a sweep and a paper, in a browser"
    measured ./tools/explore-browser.py "$everything"
    await reports
    measured ./tools/report-browser.py "$out/race/report.html" "$out/trace/report.html" "$out/sweep/report.html" \
        "$out/reproduce/headstart/report.html"
}
interop() {
    await foreign
    await_tests
    step "four foreign QUIC stacks and a browser fetch with every scheme"
    measured env HEADSTART="$everything" timeout 3600 ./interop/run.sh
}
await() { # EVENT of another sequence of checks, or the failure of one
    until [ -e "$out/$1" ] || [ -e "$out/failed" ]; do sleep 1; done
}
await_tests() { # until all of them are compiled and the first one runs
    until grep -qs '^ *Running ' "$out/tests"; do sleep 1; done
}
reproduce() { # HEADSTART PAPER [OPTIONS]
    step "$2, figure by figure, cut down: every claim's outcome is the one on record"
    # Papers with other seeds than those by which outcomes were put on record.
    local seeds=1000
    [ "$2" != headstart ] || seeds=0
    timeout 3600 "$1" reproduce "$2" --quick --check --further-seeds $seeds "${@:3}" --out "$out/reproduce" >"$out/claims-$2"
    tail -n 3 "$out/claims-$2"
    test -s "$out/reproduce/$2/report.html"
}

everything=target/debug/headstart
features=headstart/full
start compute
step "dependencies: licences, sources, duplicates, minimum Rust version"
./tools/dependencies.py
if command -v cargo-deny >/dev/null; then
    cargo deny --offline --log-level error check licenses bans sources
else
    echo "cargo deny: NOT RUN, it is not installed; tools/dependencies.py has checked the same deny.toml" |
        tee "$out/deny.log"
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
rustfmt --check --edition 2024 crates/schemes/startup/src/scheme/*.rs
# The loader of `headstart tcp` compiles libbpf; its tests need root, nginx and curl, those of a
# fleet's history a server. Missing packages are installed where that is possible. Everything is
# compiled once, with all features.
have_packages libelf-dev zlib1g-dev pkg-config gcc nginx-light curl iproute2 tcpdump clang llvm libbpf-dev bpftool procps redis-server prometheus
# The runtime of fuzz targets; its package has clang's version in its name.
have_packages "libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d. -f1)-dev"
# As udev has it everywhere: tests put programs that are not root behind a path. Elsewhere they are
# reported as not run.
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && [ -c /dev/net/tun ]; then chmod 0666 /dev/net/tun; fi
tcp="NOT RUN: Linux TCP: the headers of libelf and zlib are not installed"
if pkg-config --exists libelf zlib; then
    features+=,headstart/tcp
    tcp=
fi
start foreign
start interop

step "citations"
./tools/citations.sh
step "conformance vectors, read by another language"
./tools/conformance.py
step "tests: building"
cargo test --quiet --workspace --features "$features" --no-run
step "tests"
# Tests of the spacing of packets need a machine with nothing else on it: they run at the end. The
# Python package's runs in the background, and so do the examples of the documentation.
package=the_package_gives_what_the_command_gives
late=(
    a_first_flight_is_paced_at_25_mbit_per_second a_first_flight_is_paced_at_100_mbit_per_second
    a_lost_tail_is_repaired_in_about_half_the_time half_of_a_flight_is_sent_again_and_proactive_sends_all_of_it
)
skipped=("${late[@]/#/--skip=}" "--skip=$package")
if ! cargo test --workspace --features "$features" --no-fail-fast --lib --bins --tests \
    -- "${skipped[@]}" 2>&1 | tee "$out/tests"; then
    # Programs of tests that failed, as cargo lists them: `-p headstart --test tcp`.
    read -ra failed < <(sed -nE 's/^ +`-p [^ ]+ (--.+)`$/\1/p' "$out/tests" | sort -u | paste -sd ' ')
    [ ${#failed[@]} -gt 0 ] || { echo "ci.sh: the tests do not compile" >&2; exit 1; }
    names=$(sed -nE 's/^(test )?(.+) \.\.\. FAILED.*/\2/p' "$out/tests" | sort -u | paste -sd ' ')
    alone "$names" cargo test --workspace --features "$features" --no-fail-fast "${failed[@]}" -- "${skipped[@]}"
fi
[ -z "$tcp" ] || echo "$tcp" | tee -a "$out/tests"
# Programs in namespaces behind a path need root or user namespaces.
busy='machine (did not keep|kept) |machine wakes nobody'
step "alert rules and dashboard against a real Prometheus"
measured ./tools/monitoring.py "$everything"
step "the demonstration: a real server, client and path"
measured timeout 1800 "$everything" demo --schemes iw10,halfback,wise-start --repeats 2
finish interop
finish compute
finish foreign
touch "$out/alone"
mapfile -t checks <"$out/alone"
for check in "${checks[@]}"; do
    eval "words=($check)"
    step "alone: ${words[0]}"
    # The last line: of a long output it is the one that everybody reads.
    "${words[@]:1}" || { echo "ci.sh: failed, and failed again alone: ${words[0]}" >&2; exit 1; }
    echo "FAILED ONCE, beside other work, and passed alone: ${words[0]}"
done
step "tests of the spacing of packets, and those for which the machine was too busy, with nothing beside them"
mapfile -t -O "${#late[@]}" late < <(sed -nE "/$busy/s/.*NOT RUN: (main: tcp: )?([^ ][^:]*(::[^: ]+)*): .*/\2/p" "$out/tests" | sort -u)
# Programs whose tests measure time.
cargo test --workspace --features "$features" --lib --test copies --test spacing --test history --test tcp \
    -- "${late[@]}" >"$out/late" 2>&1 || { cat "$out/late"; exit 1; }
for name in "${late[@]}"; do
    if grep -F 'NOT RUN' "$out/late" | grep -F "$name"; then continue; fi
    if grep -F "$name ... ok" "$out/late"; then continue; fi
    echo "NOT RUN: $name: it is in none of the programs that are run again" | tee -a "$out/late"
done
step "tests that could not run here"
{
    grep 'NOT RUN' "$out/tests" | grep -vE "$busy" || true
    grep -h 'NOT RUN' "$out"/*.log "$out/late" || true
} | sort -u | tee "$out/not-run"
echo "ci.sh: passed; $(wc -l <"$out/not-run") NOT RUN"

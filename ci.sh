#!/usr/bin/env bash
# All of continuous integration, the same at a desk: formatting, lints, documentation, tests, the main job.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$1"; }

if ! command -v cargo >/dev/null; then
    echo "ci.sh: cargo is missing: install Rust 1.88 or newer with rustfmt and clippy" >&2
    exit 1
fi

step "formatting"
cargo fmt --all -- --check
step "lints"
cargo clippy --quiet --workspace --all-targets -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
step "citations"
./tools/citations.sh
step "tests"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo test --workspace 2>&1 | tee "$out/tests"
step "tests that could not run here"
# Programs in namespaces behind a path need root or user namespaces, and a machine that keeps real time.
grep 'NOT RUN' "$out/tests" || echo "none"
step "the main job, and its speed limit of ten seconds"
cargo build --quiet --release
timeout 60 ./target/release/headstart race --out "$out/race" >"$out/table"
head -n 12 "$out/table"
test -s "$out/race/report.html"
step "Halfback, figure by figure, cut down to less than three minutes"
timeout 600 ./target/release/headstart reproduce halfback --quick --check --out "$out/reproduce" >"$out/claims"
tail -n 3 "$out/claims"
test -s "$out/reproduce/halfback/report.html"
step "WiseStart, figure by figure, cut down to less than half a minute of one core"
timeout 600 ./target/release/headstart reproduce wisestart --quick --out "$out/reproduce" >"$out/claims"
tail -n 3 "$out/claims"
test -s "$out/reproduce/wisestart/report.html"
step "the demonstration: a real server, client and path"
timeout 120 ./target/release/headstart demo --schemes iw10,halfback,wise-start --repeats 2 >"$out/demo"
cat "$out/demo"
step "interop: four foreign QUIC stacks and a browser fetch with every scheme"
timeout 900 ./interop/run.sh "$out/matrix"

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
cargo test --workspace
step "the main job, and its speed limit of ten seconds"
cargo build --quiet --release
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
timeout 60 ./target/release/headstart race --out "$out/race" >"$out/table"
head -n 12 "$out/table"
test -s "$out/race/report.html"
step "Halfback, figure by figure, cut down to less than three minutes"
timeout 600 ./target/release/headstart reproduce halfback --quick --out "$out/reproduce" >"$out/claims"
tail -n 3 "$out/claims"
test -s "$out/reproduce/halfback/report.html"
step "WiseStart, figure by figure, cut down to less than half a minute of one core"
timeout 600 ./target/release/headstart reproduce wisestart --quick --out "$out/reproduce" >"$out/claims"
tail -n 3 "$out/claims"
test -s "$out/reproduce/wisestart/report.html"

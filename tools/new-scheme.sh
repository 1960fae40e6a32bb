#!/usr/bin/env bash
# A new scheme is one file and one line. Takes both from docs/a-new-scheme.md, adds them to a copy
# of the crates below the simulator, and runs its tests that go over all schemes. Results of the
# compiler are shared with the repository's own.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r Cargo.toml Cargo.lock rustfmt.toml clippy.toml crates python "$copy"

awk '/^```rust$/ { on = 1; next } /^```$/ { on = 0 } on' docs/a-new-scheme.md >"$copy/crates/startup/src/scheme/spread.rs"
line=$(awk '/^```text$/ { on = 1; next } /^```$/ { on = 0 } on' docs/a-new-scheme.md)
list=$copy/crates/startup/src/scheme.rs
awk -v line="$line" '{ print } /^schemes! \{$/ { print line }' crates/startup/src/scheme.rs >"$list"
[ "$(diff crates/startup/src/scheme.rs "$list" | grep -c '^[<>]')" = 1 ] || { echo "new-scheme.sh: the list took not one line" >&2; exit 1; }

cd "$copy"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
rustfmt --check --edition 2024 crates/startup/src/scheme/spread.rs
# Compiled once and run once: to optimise it takes longer than that saves. All crates of the copy
# need other settings than the repository's own: their results have the same names in the shared
# folder, and both would be compiled again.
fast() {
    local crate
    for crate in units startup net sim; do printf -- '--config\0profile.test.package.headstart-%s.opt-level=1\0' "$crate"; done
    for crate in host report; do printf -- '--config\0profile.test.package.headstart-%s.codegen-units=16\0' "$crate"; done
}
mapfile -d '' -t fast < <(fast)
cargo test "${fast[@]}" --quiet --offline -p headstart-startup --lib catalogue
cargo test "${fast[@]}" --quiet --offline -p headstart-sim --test properties
# It is among the schemes that are compared, under its own name: the table of fingerprints misses it
# and nothing else.
cargo test "${fast[@]}" --quiet --offline -p headstart-sim --test fingerprints >"$copy/out" 2>&1 || true
grep -q 'spread,100 kB,' "$copy/out" || { cat "$copy/out"; echo "new-scheme.sh: it did not run" >&2; exit 1; }

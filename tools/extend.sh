#!/usr/bin/env bash
# A new scheme is one file and one line, a new path element one file and some lines. Takes them from
# docs/a-new-scheme.md and docs/a-new-element.md, adds them to a copy of the repository, and runs
# the tests that go over all schemes and elements. Results of the compiler are shared with the
# repository's own.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r Cargo.toml Cargo.lock rustfmt.toml clippy.toml crates python "$copy"

block() { # LANGUAGE DOCUMENT: its code in that language
    awk -v open="^\`\`\`$1\$" '$0 ~ open { on = 1; next } /^```$/ { on = 0 } on' "$2"
}
block rust docs/a-new-scheme.md >"$copy/crates/schemes/startup/src/scheme/spread.rs"
line=$(block text docs/a-new-scheme.md)
list=$copy/crates/schemes/startup/src/scheme.rs
awk -v line="$line" '{ print } /^schemes! \{$/ { print line }' crates/schemes/startup/src/scheme.rs >"$list"
[ "$(diff crates/schemes/startup/src/scheme.rs "$list" | grep -c '^[<>]')" = 1 ] || { echo "extend.sh: the list took not one line" >&2; exit 1; }
block rust docs/a-new-element.md >"$copy/crates/networks/net/src/gaps.rs"
block diff docs/a-new-element.md | git -C "$copy" apply

cd "$copy"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
rustfmt --check --edition 2024 crates/schemes/startup/src/scheme/spread.rs
cargo fmt --check -p headstart-net -p headstart-study
# Compiled once and run once: to optimise it takes longer than that saves. All crates of the copy
# need other settings than the repository's own: their results have the same names in the shared
# folder, and both would be compiled again.
fast() {
    local crate
    for crate in units startup net sim; do printf -- '--config\0profile.test.package.headstart-%s.opt-level=1\0' "$crate"; done
    for crate in host report study; do printf -- '--config\0profile.test.package.headstart-%s.codegen-units=16\0' "$crate"; done
}
mapfile -d '' -t fast < <(fast)
cargo test "${fast[@]}" --quiet --offline -p headstart-startup --lib catalogue
cargo test "${fast[@]}" --quiet --offline -p headstart-sim --test properties
cargo test "${fast[@]}" --quiet --offline -p headstart-net --test elements
cargo test "${fast[@]}" --quiet --offline -p headstart-study --lib options
# It is among the schemes that are compared, under its own name: the table of fingerprints misses it
# and nothing else.
cargo test "${fast[@]}" --quiet --offline -p headstart-sim --test fingerprints >"$copy/out" 2>&1 || true
grep -q 'spread,100 kB,' "$copy/out" || { cat "$copy/out"; echo "extend.sh: it did not run" >&2; exit 1; }

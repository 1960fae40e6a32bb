#!/usr/bin/env bash
# Tries a release from a clean clone of the newest commit; publishes nothing.
# Usage: tools/release.sh [FOLDER]
#
# The product's crates are packaged, and built from their packages as a registry would have them.
# The command is installed with the lock file's versions, and runs the main job. Everything is
# built below FOLDER (target/release-trial), which is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-target/release-trial}")
# The laboratory's crates are not for a registry: `headstart-paper` holds files of `experiments/`.
product=(units host startup adapter store downlink ebpf quic quinn s2n-quic)
rm -rf "$out"
git clone --quiet . "$out/clone"
cd "$out/clone"
export CARGO_TARGET_DIR=$out/target
echo "== packages: ${product[*]}"
cargo publish --dry-run --locked "${product[@]/#/--package=headstart-}"
echo "== the command, installed"
cargo install --locked --quiet --path crates/lab --root "$out"
"$out/bin/headstart" race --duration 20s --repeats 2 --out "$out/race"

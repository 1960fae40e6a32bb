#!/usr/bin/env bash
# Makes a release from a clean clone of the newest commit; publishes nothing and sets no tag.
# Usage: tools/release.sh [FOLDER]
#
# Everything is made below FOLDER (target/release-trial), which is emptied first. FOLDER/dist gets
# the Debian package, the wheel for Python, the list of components (CycloneDX) and SHA256SUMS.
# Needed are cargo, python3 with venv, git, and on Debian: build-essential pkg-config libelf-dev
# zlib1g-dev dpkg-dev. cargo-deb and cargo-sbom are installed below FOLDER, unless they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-target/release-trial}")
# The laboratory's crates are not for a registry: `headstart-paper` holds files of `experiments/`.
product=(units host startup adapter store downlink ebpf quic quinn s2n-quic)
features=full,tcp
rm -rf "$out"
mkdir -p "$out/dist"
git clone --quiet . "$out/clone"
cd "$out/clone"
# Paths of the building machine in messages of panics become these, and files get the commit's time.
export RUSTFLAGS="--remap-path-prefix=$out/clone=/headstart --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR=$out/target PATH=$PATH:$out/tools/bin

step() { printf '== %s (after %d s)\n' "$1" "$SECONDS"; }

step "packages, built as a registry would have them: ${product[*]}"
cargo publish --dry-run --locked "${product[@]/#/--package=headstart-}"

step "the command, installed, and its main job"
cargo install --locked --quiet --profile dist --path crates/command --features "$features" --root "$out"
"$out/bin/headstart" race --duration 20s --repeats 2 --out "$out/race"

step "Debian package"
for tool in cargo-deb@3.7.0 cargo-sbom@0.10.0; do
    command -v "${tool%@*}" >/dev/null || cargo install --locked --quiet --root "$out/tools" --target-dir "$out/tools/target" "$tool"
done
"$out/bin/headstart" generate man packaging/man >/dev/null
"$out/bin/headstart" generate completions bash >packaging/headstart.bash
{
    cat LICENSE-MIT
    printf '\nOr, at your choice, Apache License 2.0: /usr/share/common-licenses/Apache-2.0\n'
} >packaging/copyright
gzip -9n packaging/man/* && gzip -9nc CHANGELOG.md >packaging/changelog.gz
cargo deb --no-build --profile dist --package headstart --output "$out/dist/"

step "components"
cargo sbom --cargo-package headstart --output-format cyclone_dx_json_1_6 >"$out/dist/headstart.cdx.json"

step "wheel"
python3 -m venv "$out/python"
"$out/python/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
"$out/python/bin/maturin" build --quiet --locked --out "$out/dist"
"$out/python/bin/pip" install --quiet --disable-pip-version-check "$out"/dist/*.whl
"$out/python/bin/headstart" --version

step "container"
if podman info >/dev/null 2>&1; then
    git archive HEAD | podman build --file packaging/Containerfile --tag headstart -
else
    echo "NOT RUN: container: podman is missing or cannot run here"
fi
cd "$out/dist"
sha256sum -- * | tee SHA256SUMS

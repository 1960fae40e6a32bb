#!/usr/bin/env bash
# Checks for once a week: some hours, most of them of the mutants.
# Usage: tools/weekly.sh
#
# Needed are a nightly toolchain with Miri, cargo-mutants and cargo-semver-checks. A check whose
# tool is missing reports NOT RUN.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
check() { # TITLE TOOL COMMAND..: where `cargo TOOL --version` answers
    printf '\n== %s (after %d s)\n' "$1" "$SECONDS"
    # shellcheck disable=SC2086
    if ! cargo $2 --version >/dev/null 2>&1; then
        echo "NOT RUN: $1: cargo $2 is not installed"
    elif ! "${@:3}"; then
        failed+=("$1")
    fi
}

# An interpreter is a hundred times as slow: property tests have few cases.
export PROPTEST_CASES=2 MIRIFLAGS="-Zmiri-disable-isolation"
check "undefined behaviour: units" "+nightly miri" cargo +nightly miri test -p headstart-units
check "undefined behaviour: startup" "+nightly miri" timeout 7200 cargo +nightly miri test -p headstart-startup --lib
# Atomics: each seed has other orders of the threads, and other values that a relaxed load may see.
MIRIFLAGS+=" -Zmiri-many-seeds=0..64"
check "orders of threads: atomics of startup and adapter" "+nightly miri" \
    cargo +nightly miri test -p headstart-startup -p headstart-adapter --lib threads_
unset PROPTEST_CASES MIRIFLAGS
last=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)
if [ -n "$last" ]; then
    check "changes of interfaces since $last" semver-checks cargo semver-checks --baseline-rev "$last" \
        -p headstart-units -p headstart-startup -p headstart-adapter -p headstart-store -p headstart-quic -p headstart-quinn
fi
# Changes of the code that no test of its crate finds.
check "mutants" mutants cargo mutants --timeout 120 --output target -p headstart-units -p headstart-startup -p headstart-adapter
[ ${#failed[@]} = 0 ] || { printf 'weekly.sh: failed: %s\n' "${failed[@]}" >&2; exit 1; }

#!/usr/bin/env bash
# Runs fuzz targets for some seconds. Usage: tools/fuzz.sh [SECONDS [TARGET...]]
#
# Builds with the coverage instrumentation that libFuzzer reads, by stable compiler flags, so that
# neither a nightly compiler nor cargo-fuzz is needed; `cargo fuzz run` works too. Without a
# sanitizer: it looks for panics, overflows, endless loops and unbounded memory. It starts from
# fuzz/corpus/TARGET and from what earlier runs kept in target/fuzz/corpus. Findings stay in
# target/fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(basename -s .rs -a fuzz/fuzz_targets/*.rs)
fi
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=16 --cfg fuzzing"
# A runtime of clang's (package libclang-rt-VERSION-dev), where it is installed, saves building
# another: it is by far the largest part of this.
for runtime in /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-"${host%%-*}".a; do
    [ -e "$runtime" ] && export CUSTOM_LIBFUZZER_PATH=$runtime
done
# A target is given, so that build scripts and macros are not instrumented.
cargo build --quiet --profile fuzz --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target "$host" \
    "${targets[@]/#/--bin=}"
run() { # TARGET
    local target=$1 corpus=target/fuzz/corpus/$1 artifacts=target/fuzz/artifacts/$1 log=target/fuzz/$1.log
    mkdir -p "$corpus" "$artifacts"
    if ! "target/fuzz/$host/fuzz/$target" "$corpus" "fuzz/corpus/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$artifacts/" -print_final_stats=1 >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "fuzz.sh: $target failed; the input is in $artifacts" >&2
        return 1
    fi
    sed -n "s/^stat::number_of_executed_units: */$target: executions /p" "$log"
}
export -f run
export host seconds
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'run "$1"' run

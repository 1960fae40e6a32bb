#!/usr/bin/env bash
# Builds the object that is checked in beside its source. Needs clang, llvm-strip and the headers of
# libbpf-dev. usage: build.sh [OUTPUT]
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-headstart.bpf.o}
clang -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I"/usr/include/$(uname -m)-linux-gnu" -D__TARGET_ARCH_x86 \
    -fdebug-prefix-map="$PWD"=. -c headstart.bpf.c -o "$out"
llvm-strip -g "$out"
# Another compiler makes another object: the test that rebuilds it asks for the same one.
[ "$#" -gt 0 ] || clang --version | head -n 1 >compiler

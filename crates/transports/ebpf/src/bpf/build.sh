#!/usr/bin/env bash
# Builds the objects that are checked in beside their sources. Needs clang, llvm-strip and the
# headers of libbpf-dev. usage: build.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")"
for name in headstart window; do
    out=${1:-.}/$name.bpf.o
    clang -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I"/usr/include/$(uname -m)-linux-gnu" -D__TARGET_ARCH_x86 \
        -fdebug-prefix-map="$PWD"=. -c "$name.bpf.c" -o "$out"
    llvm-strip -g "$out"
done
# Another compiler makes another object: the test that rebuilds them asks for the same one.
[ "$#" -gt 0 ] || clang --version | head -n 1 >compiler

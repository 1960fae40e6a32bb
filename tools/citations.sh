#!/usr/bin/env bash
# Every RFC that the code cites must be listed in docs/references.md, and every quotation in
# docs/quotations.csv.
set -euo pipefail
cd "$(dirname "$0")/.."
unknown=$(comm -23 \
    <(grep -rhoE 'RFC [0-9]{3,5}' crates --include='*.rs' | sort -u) \
    <(grep -oE 'RFC [0-9]{3,5}' docs/references.md | sort -u))
if [ -n "$unknown" ]; then
    echo "citations.sh: cited in the code but not listed in docs/references.md:" >&2
    echo "$unknown" >&2
    exit 1
fi
echo "$(grep -rhoE 'RFC [0-9]{3,5}' crates --include='*.rs' | wc -l) citations of RFCs, all of them known"
./tools/quotations.py

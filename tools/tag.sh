#!/usr/bin/env bash
# Tags the newest commit with the version of Cargo.toml; the message is the version's part of
# CHANGELOG.md. Pushes nothing. To be run after tools/release.sh.
# Usage: tools/tag.sh
set -euo pipefail
cd "$(dirname "$0")/.."
refuse() { echo "tag.sh: $1" >&2; exit 1; }
version=$(sed -nE 's/^version = "(.+)"$/\1/p' Cargo.toml)
[ -z "$(git status --porcelain)" ] || refuse "found changes or new files, expected a clean tree"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || refuse "found the tag v$version, expected a new version"
notes=$(sed -n "/^## ${version//./\\.}, /,/^## /p" CHANGELOG.md | sed '1b; /^## /d')
grep -qE "^## ${version//./\\.}, [0-9]{4}-[0-9]{2}-[0-9]{2}$" <<<"$notes" ||
    refuse "CHANGELOG.md: expected a heading \`## $version, YYYY-MM-DD\`"
# `#` begins a heading here, and no comment.
git tag --annotate --cleanup=whitespace --message "headstart ${notes#\#\# }" "v$version"
echo "tagged v$version; to be pushed with: git push origin v$version"

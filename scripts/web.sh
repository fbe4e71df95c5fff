#!/usr/bin/env bash
# Builds the page into web/dist, if what it is made of has changed. Without node it says so, and the small page serves.
#   --install   only the packages
#   --build     fails without node
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -lt 20 ]; then
    echo "page: not built, since node 20 or later is not here; a small one stands in its place"
    [ $# -eq 0 ]
    exit
fi

installed=web/node_modules/.package-lock.json
if [ ! -e "$installed" ] || [ web/package-lock.json -nt "$installed" ] || [ web/package.json -nt "$installed" ]; then
    echo "page: installing the packages of web"
    # Not `npm ci`: the lock names no addresses, and packages for other machines may be missing. No script of a package is
    # needed, and none is trusted.
    npm --prefix web install --ignore-scripts --no-audit --no-fund --no-save --loglevel=error >/dev/null
    touch "$installed"
fi
if [ "${1:-}" = --install ]; then exit; fi

built=web/dist/index.html
if [ ! -e "$built" ] || [ -n "$(find web/src web/public web/scripts web/*.json web/*.ts web/*.html -newer "$built" -print -quit)" ]; then
    npm --prefix web run --silent build
fi

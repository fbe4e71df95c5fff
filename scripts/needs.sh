#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. Says what it installs, and nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "needs: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian's packages, by what they bring: a command that is missing names the package that has it.
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need git git
need cc gcc
# Without it the tests of that sandbox are skipped, and the product falls back to the kernel's own.
need bwrap bubblewrap
if ! command -v "${CHROMIUM:-/usr/bin/chromium}" >/dev/null; then missing+=(chromium); fi

if [ "${#missing[@]}" -gt 0 ]; then
    can_install=no
    if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then can_install=yes; fi
    if [ "$can_install" = no ] || ! command -v apt-get >/dev/null; then
        fail "install ${missing[*]}, then try again (CHROMIUM=<path> if Chromium is elsewhere)"
    fi
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    as_root apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; fail "apt-get update failed"; }
    for package in "${missing[@]}"; do
        echo "needs: installing $package"
        as_root apt-get install -qq -y --no-install-recommends "$package" >"$log" 2>&1 || {
            cat "$log" >&2
            fail "$package could not be installed"
        }
    done
fi

command -v node >/dev/null || fail "install node 20 or later, with npm"
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || fail "node 20 or later is needed; this is $(node --version)"
command -v npm >/dev/null || fail "install npm"

# As in tests/clients, but `npm ci` refuses a lock that names other machines' packages without their addresses.
scripts/web.sh --install

clients=tests/clients
installed=$clients/node_modules/.package-lock.json
if [ ! -e "$installed" ] || [ "$clients/package-lock.json" -nt "$installed" ]; then
    echo "needs: installing the packages of $clients"
    # No script of a package is needed, and none is trusted.
    npm --prefix "$clients" ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
    touch "$installed"
fi

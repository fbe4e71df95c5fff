#!/usr/bin/env bash
# All tests: Rust's, then real clients against the real binary. Both run even if the first fails.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/needs.sh

# Before anything is compiled: the binary that is tested has the page inside.
scripts/web.sh --build

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=()

cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$logs/rust" || failed+=("cargo test")

npm --prefix web run --silent types || failed+=("types of the page")
npm --prefix web run --silent test -- --reporter=dot 2>&1 | tee "$logs/web" || failed+=("page")

if cargo build --locked -p tolka -p tolka-scripted; then
    export TOLKA_BIN="${TOLKA_BIN:-target/debug/tolka}"
    # They wait more than they work: two files at a time do no harm to each other.
    node --test --test-concurrency=2 \
        --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$logs/clients" \
        tests/clients/*.test.mjs web/e2e/*.test.mjs || failed+=("clients")
else
    failed+=("cargo build")
fi

touch "$logs/clients" "$logs/web"
# "test result: ok. 12 passed; 0 failed; …", and "# pass 12" in TAP.
rust() { sed -nE "s/^test result:.* ([0-9]+) $1;.*/\1/p" "$logs/rust" | awk '{ n += $1 } END { print n + 0 }'; }
clients() { awk -v word="$1" '$1 == "#" && $2 == word { n += $3 } END { print n + 0 }' "$logs/clients"; }
# "      Tests  2 failed | 240 passed (242)", with colours or without.
page() { sed -E 's/\x1b\[[0-9;]*m//g' "$logs/web" | sed -nE "s/^ *Tests .*[ |]([0-9]+) $1.*/\1/p" | awk '{ n += $1 } END { print n + 0 }'; }
counts="Rust $(rust passed) passed, $(rust failed) failed; page $(page passed) passed, $(page failed) failed; clients $(clients pass) passed, $(clients fail) failed"
if [ "${#failed[@]}" -gt 0 ]; then
    echo "tests: $counts. FAILED: ${failed[*]}"
    exit 1
fi
echo "tests: $counts"

#!/usr/bin/env bash
# Builds the server and the bench beside it, and measures. Arguments go to tolka-bench.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = peers ]; then
  # Pinned, and without their install scripts: the bench calls the programs inside directly.
  npm ci --prefix crates/bench/peers --ignore-scripts --no-audit --no-fund --loglevel error
fi
cargo build --profile measure --locked --quiet -p tolka -p tolka-bench
exec "${CARGO_TARGET_DIR:-target}/measure/tolka-bench" "$@"

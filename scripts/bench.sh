#!/usr/bin/env bash
# Builds the server as `make build` does and the bench beside it, and measures. Arguments go to tolka-bench.
set -euo pipefail
cd "$(dirname "$0")/.."

target="${CARGO_TARGET_DIR:-target}"
serves=yes
for argument; do
  case "$argument" in
    peers)
      # Pinned, and without their install scripts: the bench calls the programs inside directly.
      npm ci --prefix crates/bench/peers --ignore-scripts --no-audit --no-fund --loglevel error
      ;;
    count)
      command -v valgrind >/dev/null || { echo "counting needs valgrind: apt-get install valgrind" >&2; exit 1; }
      serves=no
      ;;
    encode | report) serves=no ;;
  esac
done

# TOLKA names another binary to measure.
if [ "$serves" = yes ] && [ -z "${TOLKA:-}" ]; then
  cargo build --release --locked --quiet --bin tolka
  export TOLKA="$target/release/tolka"
fi
# The bench takes minutes to build as a release, and nothing of it is the product but the encoders it times.
cargo build --profile measure --locked --quiet -p tolka-bench
exec "$target/measure/tolka-bench" "$@"

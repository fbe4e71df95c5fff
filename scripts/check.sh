#!/usr/bin/env bash
# Format, lints, documentation, licences. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

# Licences that go with Apache-2.0; anything else is for a person to look at.
cargo metadata --format-version 1 --locked | python3 -c '
import json, re, sys
allowed = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unicode-3.0", "Zlib", "Unlicense", "CC0-1.0",
           "MIT-0", "0BSD", "BSL-1.0", "Apache-2.0 WITH LLVM-exception",
           "CDLA-Permissive-2.0"}  # the last: a list of certificates
bad = []
for package in json.load(sys.stdin)["packages"]:
    licence = package["license"] or "none"
    choices = [c.strip(" ()") for c in re.split(r" OR |/", licence)]
    if not any(all(part.strip(" ()") in allowed for part in choice.split(" AND ")) for choice in choices):
        bad.append(package["name"] + ": " + licence)
print("licences: all fit" if not bad else "licences that do not fit:\n" + "\n".join(bad))
sys.exit(bool(bad))
'

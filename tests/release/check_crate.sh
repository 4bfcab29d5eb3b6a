#!/usr/bin/env bash
# Unpacks the crate that `cargo package` made and runs its tests there, where nothing of the project can be seen.
set -euo pipefail
cd "$(dirname "$0")/../.."
field() { cargo metadata --quiet --no-deps --format-version 1 | python3 -c "import json, sys; found = json.load(sys.stdin); print($1)"; }
target=$(field 'found["target_directory"]')
version=$(field 'found["packages"][0]["version"]')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf "$target/package/nuptse-$version.crate" -C "$folder"
cd "$folder/nuptse-$version"
echo "nuptse-$version.crate: $(stat -c %s "$target/package/nuptse-$version.crate") bytes, $(find . -type f | wc -l) files"
# What was compiled for the project's own tests serves here too; only the crate itself is compiled again.
CARGO_TARGET_DIR=$target cargo test

#!/usr/bin/env bash
# Writes everything that follows from the public headers: docs/generated/gcx-api.json, the generated
# files of the bindings, the record of the ABI of the version that is not yet released, and bindgen's
# file. Writes the man pages and the completion of shells, which follow from the command's tables.
#
#     tools/regenerate.sh [BUILD]      # BUILD: the Meson build of the library and the command
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/tests}

python3 tools/describe_api.py
python3 -m bindings.generator
python3 tests/abi/record.py --update
ninja -C "$build" src/cli/gcx-manual >/dev/null
"$build/src/cli/gcx-manual" src/cli/generated

export GCX_LIB_DIR=$build/src LD_LIBRARY_PATH=$build/src CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$build/cargo}
cd bindings/rust
if ! cargo test -q -p gcx-sys --features bindgen --test bindings >/dev/null 2>&1; then
    made=$(find "$CARGO_TARGET_DIR" -path '*/out/bindings.rs' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
    cp "$made" gcx-sys/src/generated/bindings.rs
    cargo test -q -p gcx-sys --features bindgen --test bindings
fi

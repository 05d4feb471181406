#!/usr/bin/env bash
# Packs the scenario in the languages that open the library by dlopen, and Go's tests, for a machine
# with a GPU, which needs nothing installed but python3, and there tests/gpu/run-languages.sh:
#     tests/gpu/pack-languages.sh BUILD FOLDER
# Takes what `tests/run.sh dlopen` has built and installed. FOLDER/bin gets a program for each
# language, which takes the library's path. Programs of other languages may be added.
set -euo pipefail
build=$(realpath "${1:?usage: tests/gpu/pack-languages.sh BUILD FOLDER}")
folder=$(realpath -m "${2:?usage: tests/gpu/pack-languages.sh BUILD FOLDER}")
cd "$(dirname "$0")/../.."
mkdir -p "$folder"/bin "$folder"/examples "$folder"/bindings/{node/node_modules,lua,ctypes}
cp "$build/src/libgcx.so.1" "$folder"
cp -r examples/lua examples/node examples/python-ctypes "$folder/examples"
for language in node lua ctypes; do
    cp -r "bindings/$language/generated" "$folder/bindings/$language"
done
cp bindings/node/package.json "$folder/bindings/node"
cp -r bindings/node/node_modules/{koffi,@koromix} "$folder/bindings/node/node_modules"

# wrapper NAME COMMAND: a program in FOLDER/bin that runs one of examples/.
wrapper() {
    # shellcheck disable=SC2016 # $0 and $@ are the wrapper's own.
    printf '#!/bin/sh\ncd "$(dirname "$0")/../examples" && exec %s "$@"\n' "$2" >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}
(cd examples/go && CGO_ENABLED=0 go build -buildvcs=false -ldflags=-s -o "$folder/bin/go" .)
(cd bindings/go && CGO_ENABLED=0 go test -c -buildvcs=false -ldflags=-s -o "$folder/go-tests" .)
wrapper ctypes 'python3 python-ctypes/by_ctypes.py'
wrapper lua 'luajit lua/scenario.lua'
wrapper node 'node node/scenario.mjs'
# Copies what Debian has: LuaJIT needs no library; Node.js does, and is large.
for tool in luajit node; do
    xz -T0 -3 -c "$(readlink -f "$(command -v "$tool")")" >"$folder/$tool.xz"
done
du -sh "$folder"

#!/usr/bin/env bash
# Builds gcx and splits a GPU with it: the real one where there is one, else a simulated one.
# Installs what is missing to build (a compiler, Meson, Ninja, the CUDA headers). May be run again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/setup.sh
. tools/setup.sh

need g++ g++
need gcc gcc
need python3 python3
install_missing
if ! meson_is_enough || ! python3 tools/find_cuda_include.py >/dev/null 2>&1; then
    use_venv tools/requirements-build.txt
fi

build=build/quickstart
if [ ! -f "$build/build.ninja" ]; then
    note "configuring $build"
    # Several sources at once: most of a compiler's time goes into headers that they share.
    meson setup "$build" --buildtype=release -Dtests=false -Dunity=on -Dunity_size=12 >/dev/null ||
        die "configuring failed, see $build/meson-logs/meson-log.txt"
fi
note "building"
ninja -C "$build" --quiet
gcx=$build/src/cli/gcx

# A real GPU is there if its driver opens. Why not, if it doesn't, is shown: the simulation never
# stands in silently.
if [ -z "${GCX_DRIVER:-}" ]; then
    if why=$("$gcx" info 2>&1 >/dev/null); then
        note "a real GPU is there"
    else
        note "no GPU here: $why"
        note "so this runs on the SIMULATED driver: an H100 with CUDA 13.0"
        export GCX_DRIVER=sim:h100@13.0
    fi
else
    why=$("$gcx" info 2>&1 >/dev/null) ||
        die "GCX_DRIVER=$GCX_DRIVER can't be used: ${why#gcx info: }; unset GCX_DRIVER for the real GPU, or set it to sim:h100@13.0"
fi
sms=$("$gcx" info --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"][0]["sm_count"])')
if [ "$sms" -ge 132 ]; then
    split=108,24
else
    split=rest,$((sms / 4))
fi

"$gcx" info
printf '\n$ gcx verify --sms %s\n' "$split"
"$gcx" verify --sms "$split"
for example in "$build"/examples/split "$build"/examples/dlopen; do
    printf '\n$ %s\n' "$example"
    "$example"
done

cat <<END

Next, in this shell:
    export PATH=$PWD/$build/src/cli:\$PATH${GCX_DRIVER:+ GCX_DRIVER=$GCX_DRIVER}
    gcx plan --sms 24,rest       # what a split gives
    gcx exec --sms 24 -- PROGRAM # a program on 24 SMs
docs/tutorial.md goes on from here.
END

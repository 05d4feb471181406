#!/usr/bin/env bash
# Runs Rust programs on a GPU machine that has no Rust. On the machine that has Rust:
#     tests/gpu/run-rust.sh build FOLDER      # programs and tests with gcx inside
# and on the machine with the GPU, with a copy of that folder:
#     tests/gpu/run-rust.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

build() {
    local folder=$1 target=build/rust-gpu-target
    if [ -z "${CUDA_HOME:-}" ]; then
        CUDA_HOME=$(dirname "$(python3 tools/find_cuda_include.py)")
        export CUDA_HOME
    fi
    local options=(--release --locked --no-default-features --features bundled --target-dir "$PWD/$target")
    unset GCX_LIB_DIR
    (cd bindings/rust && cargo build -q "${options[@]}" -p gcx --example scenario)
    (cd bindings/rust && cargo build -q "${options[@]}" -p gcx-tests --bin overhead)
    (cd examples/rust && cargo build -q "${options[@]}")
    mkdir -p "$folder"
    cp "$target"/release/{examples/scenario,overhead,gcx-with-cudarc} "$folder"
    local name program
    for name in leases graphs; do
        # Cargo reports the path of the program, which has a number in its name.
        program=$(cd bindings/rust &&
            cargo test -q "${options[@]}" -p gcx --no-run --message-format=json --test "$name" |
            sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
        strip -o "$folder/$name" "$program"
    done
}

# checked NAME PATTERN...: runs a program, which has to print each pattern.
failed=0
checked() {
    local name=$1 said
    shift
    said=$("$folder/$name" 2>&1) || { printf 'FAILED: %s: status %s\n' "$name" "$?" && failed=1; }
    printf -- '-- %s\n%s\n' "$name" "$said"
    for pattern in "$@"; do
        grep -qE -- "$pattern" <<<"$said" || { printf 'FAILED: %s: no line "%s"\n' "$name" "$pattern" && failed=1; }
    done
    ! grep -q SIMULATED <<<"$said" || { printf 'FAILED: %s: no GPU is involved\n' "$name" && failed=1; }
}

# tested NAME TEST...: runs these tests of a test program, one after the other; each has to pass. They
# take less than a minute; a kernel that waits forever ends with the program.
tested() {
    local name=$1 said count
    shift
    said=$(timeout 300 "$folder/$name" --test-threads=1 --exact "$@" 2>&1) ||
        { printf 'FAILED: %s: status %s\n' "$name" "$?" && failed=1; }
    count=$(sed -n 's/^test result: ok\. \([0-9]*\) passed; 0 failed;.*/\1/p' <<<"$said")
    printf -- '-- %s: %s of %s tests passed\n%s\n' "$name" "${count:-not all}" $# "$said"
    [ "${count:-0}" -ge $# ] || { printf 'FAILED: %s: not all of the %s tests passed\n' "$name" $# && failed=1; }
}

if [ "${1:-}" = build ] && [ $# -eq 2 ]; then
    build "$2"
    exit
fi
if [ $# -ne 1 ] || [ ! -x "$1/scenario" ]; then
    die "usage: $0 build FOLDER; $0 FOLDER"
fi
folder=$1
unset GCX_DRIVER
checked scenario '^partition 0 runs on 108 SMs' '^partition 1 runs on 24 SMs' '^no SM is in both$' '^140 SMs: .*915\]$'
checked gcx-with-cudarc '^ok:' '^a kernel of cudarc in 108 SMs: .* no other$' \
    '^a kernel of cudarc in 24 SMs: .* no other$' '^a graph of cudarc in 108 SMs: .* no other$' \
    '^a graph of cudarc in 24 SMs: .* no other$'
checked overhead 'ratio'
tested leases lease_values_are_converted resize_moves_streams dropped_lease_ends_its_streams \
    cancel_ends_present_and_later_waits invalid_values_are_refused
tested graphs graph_launch_runs_on_the_stream kernel_parameters_are_copied wrong_graph_is_refused
exit $failed

#!/usr/bin/env bash
# Measures what dynamic parallelism does to partitions on compute capability 9.x: docs/explanation/isolation.md.
#     tests/gpu/dynamic_parallelism.sh BUILD
# Builds dynamic_parallelism.cu with nvcc (the environment's NVCC, or from the PATH or /usr/local/cuda),
# runs it in one process, then in two under a private MPS daemon. Prints plain lines; ends within 120
# seconds. Needs exclusive use of a GPU. Without nvcc and with GCX_SIM set, it is built by g++ and
# runs on the simulated driver of BUILD, to check the script.
set -uo pipefail
build=$(realpath "${1:?usage: tests/gpu/dynamic_parallelism.sh BUILD}")
if [ -z "${GCX_DYNAMIC_PARALLELISM_BOUNDED:-}" ]; then
    export GCX_DYNAMIC_PARALLELISM_BOUNDED=1
    exec timeout -k 5 120 bash "$0" "$build"
fi
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
folder=$(mktemp -d)
mkdir "$folder/pipe" "$folder/log" "$folder/none" "$folder/steps"
program=$folder/dynamic_parallelism
daemon=
failed=0

control() { CUDA_MPS_PIPE_DIRECTORY=$folder/pipe CUDA_MPS_LOG_DIRECTORY=$folder/log timeout 10 nvidia-cuda-mps-control "$@"; }

end() {
    [ -z "$daemon" ] || echo quit | control >"$folder/log/quit" 2>&1
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

# The links of a build folder may have been lost on the way to this machine.
library=$(find "$build/src" -maxdepth 1 -type f -name 'libgcx.so.*.*.*' | head -n 1)
[ -n "$library" ] || { printf 'FAILED: %s/src has no libgcx.so\n' "$build" && exit 1; }
ln -s "$library" "$folder/libgcx.so"
ln -s "$library" "$folder/libgcx.so.1"
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset GCX_DRIVER CUDA_MODULE_LOADING CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_DEVICE_MAX_CONNECTIONS
date -u '+%Y-%m-%d %H:%M:%S'

if [ -n "${GCX_SIM:-}" ]; then
    export LD_LIBRARY_PATH=$build/src/sim/libcuda:$LD_LIBRARY_PATH
    cuda=$(python3 "$root/tools/find_cuda_include.py")
    g++ -std=c++20 -O1 -Wall -Wextra -x c++ "$tests/dynamic_parallelism.cu" -o "$program" \
        -I"$root/include" -I"$cuda" -L"$folder" -lgcx -ldl -pthread || exit 1
else
    nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
    nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
    "$nvcc" --version | tail -n 2
    "$nvcc" -std=c++17 -O1 -rdc=true -arch=sm_90 "$tests/dynamic_parallelism.cu" -o "$program" \
        -I"$root/include" -L"$folder" -lgcx -lcudadevrt -ldl -lpthread || {
        printf 'FAILED: nvcc\n'
        exit 1
    }
fi
printf 'built after %d s\n' "$SECONDS"

run() { # SECONDS NAME COMMAND...: each of its lines goes out at once
    local seconds=$1 name=$2
    shift 2
    printf '\n== %s\n' "$name"
    timeout -k 2 "$seconds" "$@"
    local status=$?
    [ "$status" -eq 0 ] || {
        failed=$((failed + 1))
        printf 'FAILED: %s: status %d\n' "$name" "$status"
    }
}

run 35 'one process, lazy loading' env "CUDA_MPS_PIPE_DIRECTORY=$folder/none" "$program" single

printf '\n== two processes under MPS: P loads the module, Q does not\n'
if [ -z "${GCX_SIM:-}" ]; then
    if command -v nvidia-cuda-mps-control >/dev/null && control -d; then
        daemon=yes
    else
        printf 'FAILED: no MPS daemon\n'
        cat "$folder"/log/* 2>/dev/null
        exit 1
    fi
fi
under_mps=(env "CUDA_MPS_PIPE_DIRECTORY=$folder/pipe" "CUDA_MPS_LOG_DIRECTORY=$folder/log")
"${under_mps[@]}" timeout -k 2 45 "$program" loads "$folder/steps" >"$folder/p" 2>&1 &
p=$!
"${under_mps[@]}" timeout -k 2 45 "$program" watches "$folder/steps" >"$folder/q" 2>&1
q_status=$?
wait "$p"
p_status=$?
cat "$folder/p" "$folder/q"
printf 'P ended with status %d, Q with %d\n' "$p_status" "$q_status"
[ "$p_status" -eq 0 ] && [ "$q_status" -eq 0 ] || failed=$((failed + 1))
printf '\nended after %d s, %d failed\n' "$SECONDS" "$failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Measures two processes on one GPU, with and without MPS, partitioned or not: docs/guides/two-processes.md.
#     tests/gpu/mps.sh BUILD [SECONDS FOR EACH ROW]
# Starts a private MPS daemon, with private folders, and ends it. Needs exclusive use of a GPU of
# 132 SMs. Ends with "N passed, N failed".
set -uo pipefail
build=$(realpath "${1:?usage: tests/gpu/mps.sh BUILD [SECONDS FOR EACH ROW]}")
seconds=${2:-10}
program=$build/tests/gpu/gcx-gpu-mps
gcx=$build/src/cli/gcx
export LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset GCX_DRIVER CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_DEVICE_MAX_CONNECTIONS
folder=$(mktemp -d)
mkdir "$folder/none" "$folder/pipe" "$folder/log"
passed=0
failed=0
daemon=

control() { CUDA_MPS_PIPE_DIRECTORY=$folder/pipe CUDA_MPS_LOG_DIRECTORY=$folder/log nvidia-cuda-mps-control "$@"; }

end() {
    [ -z "$daemon" ] || echo quit | control >"$folder/log/quit" 2>&1
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

# The environment of clients of this daemon, and of none.
under_mps=(env "CUDA_MPS_PIPE_DIRECTORY=$folder/pipe" "CUDA_MPS_LOG_DIRECTORY=$folder/log")
without=(env "CUDA_MPS_PIPE_DIRECTORY=$folder/none")

check() { # NAME CONDITION: of awk
    if awk "BEGIN { exit !($2) }"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: %s\n' "$1" "$2"
    fi
}

# row NAME KIND HOG'S PART, "" for none; its percentage; the critical one's part; its percentage.
# Sets p50, p90, p99, rate.
row() {
    local -n way=$2
    local hog=
    rate=0
    if [ -n "$3" ]; then
        # The hog starts before the other process, and ends after it.
        "${way[@]}" ${4:+CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$4} \
            "$program" hog "$((seconds + 6))" "$3" >"$folder/hog" 2>"$folder/hog.err" &
        hog=$!
        sleep 3
    fi
    p50=0 p90=0 p99=0
    read -r p50 p90 p99 < <("${way[@]}" ${6:+CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$6} \
        timeout 120 "$program" critical "$seconds" "$5")
    if [ -n "$hog" ]; then
        wait "$hog" && rate=$(<"$folder/hog")
        cat "$folder/hog.err"
    fi
    printf '%-46s %10s %10s %10s %8s\n' "$1" "$p50" "$p90" "$p99" "$([ -z "$hog" ] || echo "$rate")"
    check "$1: both ran" "$p50 > 0 && ($rate > 0 || \"$3\" == \"\")"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
if ! command -v nvidia-cuda-mps-control >/dev/null; then
    printf 'nvidia-cuda-mps-control is not installed: it comes with the driver\n0 passed, 1 failed\n'
    exit 1
fi
printf '%-46s %10s %10s %10s %8s\n' 'us, launch to end of a kernel of 24 blocks' p50 p90 p99 hog/s
row 'alone, no MPS' without '' '' plain ''
row 'no MPS, plain streams' without plain '' plain ''
slices=$p50
row 'no MPS, gcx 108 and 24' without 108 '' 24 ''
check 'without MPS a partition changes nothing' "$p50 > $slices / 3 && $p50 < $slices * 3"
"${without[@]}" "$gcx" info --json >"$folder/info" && grep -q '"state": "off"' "$folder/info"
check 'gcx info says that there is no MPS' "$? == 0"

if ! control -d; then
    printf 'the MPS daemon did not start:\n'
    cat "$folder"/log/* 2>/dev/null
    printf '%d passed, %d failed\n' "$passed" "$((failed + 1))"
    exit 1
fi
daemon=yes
row 'alone, under MPS' under_mps '' '' plain ''
alone=$p50
"${under_mps[@]}" "$gcx" info --json >"$folder/info" && grep -q '"state": "on"' "$folder/info"
check 'gcx info says that there is MPS' "$? == 0"
"${under_mps[@]}" "$gcx" verify --sms 108,24 >"$folder/verify" && grep -q virtual "$folder/verify"
check 'gcx verify says that SM numbers are virtual' "$? == 0"
row 'MPS, plain streams' under_mps plain '' plain ''
plain=$p50
row 'MPS, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE 80, 20' under_mps plain 80 plain 20
check 'percentages isolate' "$p50 < $alone * 4"
row 'MPS, gcx 108 and 24' under_mps 108 '' 24 ''
check 'partitions of two processes isolate under MPS' "$p50 < $alone * 4 && $p50 * 10 < $plain"
# Using the same SMs in two processes shows in the latency. Most of the blocks find room on SMs that
# the other process leaves for a moment.
row 'MPS, gcx 108 and a part of the same 108' under_mps 108 '' 108 ''
check 'the same partition twice does not' "$p90 > $alone * 4"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

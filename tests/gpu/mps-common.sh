# Sourced by mps.sh and reservations.sh: two processes on a GPU, with a private MPS daemon and without.
# shellcheck shell=bash disable=SC2034 # the two scripts use the variables
set -uo pipefail
: "${1:?usage: $0 BUILD [SECONDS FOR EACH ROW]}"
build=$(realpath "$1")
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
started=()

control() { CUDA_MPS_PIPE_DIRECTORY=$folder/pipe CUDA_MPS_LOG_DIRECTORY=$folder/log nvidia-cuda-mps-control "$@"; }

end() {
    [ ${#started[@]} -eq 0 ] || kill -KILL "${started[@]}" 2>/dev/null
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

start_mps() {
    if ! control -d; then
        printf 'the MPS daemon did not start:\n'
        cat "$folder"/log/* 2>/dev/null
        printf '%d passed, %d failed\n' "$passed" "$((failed + 1))"
        exit 1
    fi
    daemon=yes
}

# row NAME KIND HOG'S PART, "" for none; its percentage; the critical one's part, "" for none; its
# percentage. Sets p50, p90, p99 of the critical one, and rate, the hog's kernels a second.
row() {
    local -n way=$2
    local hog=
    rate=0 p50=0 p90=0 p99=0
    if [ -n "$3" ]; then
        # The hog starts before the other process, and ends after it.
        "${way[@]}" ${4:+CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$4} \
            "$program" hog "$((seconds + 6))" "$3" >"$folder/hog" 2>"$folder/hog.err" &
        hog=$!
        started+=("$hog")
        sleep 3
    fi
    [ -z "$5" ] || read -r p50 p90 p99 < <("${way[@]}" ${6:+CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$6} \
        timeout 120 "$program" critical "$seconds" "$5")
    if [ -n "$hog" ]; then
        wait "$hog" && rate=$(<"$folder/hog")
        cat "$folder/hog.err"
    fi
    printf '%-46s %10s %10s %10s %8s\n' "$1" "$p50" "$p90" "$p99" "$([ -z "$hog" ] || echo "$rate")"
    check "$1: all ran" "(\"$5\" == \"\" || $p50 > 0) && (\"$3\" == \"\" || $rate > 0)"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
if ! command -v nvidia-cuda-mps-control >/dev/null; then
    printf 'nvidia-cuda-mps-control is not installed: it comes with the driver\n0 passed, 1 failed\n'
    exit 1
fi
printf '%-46s %10s %10s %10s %8s\n' 'us, launch to end of a kernel of 24 blocks' p50 p90 p99 hog/s

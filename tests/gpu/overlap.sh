#!/usr/bin/env bash
# Measures two batches in turns over 2, 4 or 8 GPUs, and a table that stays in the L2 cache, for docs/guides/communication.md
# and docs/guides/l2-cache.md, from an installed wheel, with the python3 that has PyTorch and CuPy:
#     tests/gpu/overlap.sh WHEEL [FOLDER FOR LOGS]
# Prints figures for docs/measurements/log.md, and ends with "N passed, N failed". GPUS, REPEATS, SWEEP and TOKENS change
# how much it measures.
set -uo pipefail
wheel=$(realpath "${1:?usage: tests/gpu/overlap.sh WHEEL [FOLDER FOR LOGS]}")
logs=$(realpath -m "${2:-gpu-logs}")
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../examples/python
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
mkdir -p "$logs"
unset GCX_DRIVER
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel" || exit 2
export PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
passed=0
failed=0

# verdict NAME STATUS: counts a test.
verdict() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        printf 'FAILED: %s\n' "$1"
        failed=$((failed + 1))
    fi
}

# step NAME COMMAND...: one test; its output goes to the log folder and to the terminal.
step() {
    local name=$1
    shift
    printf '== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$logs/$name.log"
    verdict "$name" "${PIPESTATUS[0]}"
}

# refuses NAME PATTERN COMMAND...: it must end with an error, and a line like the pattern.
refuses() {
    local name=$1 pattern=$2
    shift 2
    printf '== %s: %s\n' "$name" "$*"
    if "$@" >"$logs/$name.log" 2>&1; then
        verdict "$name" 1
    else
        grep -qE "$pattern" "$logs/$name.log"
        verdict "$name" $?
    fi
}

# ranks COUNT ARGUMENT...: the program, a process for each GPU.
ranks() {
    local count=$1
    shift
    python3 -m torch.distributed.run --standalone --nproc-per-node "$count" \
        "$examples/two_batch_overlap.py" "$@"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
count=$(nvidia-smi --list-gpus | wc -l)
read -ra tokens <<<"${TOKENS:-2048 8192}"
read -ra sizes <<<"${GPUS:-2 4 8}"

refuses alone 'needs 2 or more GPUs of one host' python3 "$examples/two_batch_overlap.py"
refuses one-rank '2, 4 or 8 GPUs share tokens and experts evenly, not 1' ranks 1
refuses too-few-gpus 'rank 1: there are 1 GPUs for 2 processes' \
    env CUDA_VISIBLE_DEVICES=0 python3 -m torch.distributed.run --standalone --nproc-per-node 2 \
    "$examples/two_batch_overlap.py"
for each in "${sizes[@]}"; do
    [ "$each" -le "$count" ] || continue
    refuses "$each-too-large" "need [0-9]+ GiB of device memory" \
        ranks "$each" --layer experts --experts 4000 --tokens 2048
    step "$each-gpus" ranks "$each" --tokens "${tokens[@]}" --repeats "${REPEATS:-10}" \
        --sweep-repeats "${SWEEP:-5}" --json "$logs/overlap-$each.json" \
        --timeline "$logs/overlap-$each.svg" \
        --arms compute exchange exchange-ctas8 exchange-copies sequence sequence-copies plain \
        plain-ctas8 plain-copies priority priority-ctas8 split-8 split-8-target \
        split-8-target-ctas8
    step "$each-figures" python3 "$here/overlap_figures.py" "$logs/overlap-$each.json"
done
[ "$count" -ge 2 ] || printf 'skipped: two batches in turns need 2 GPUs\n'

step l2 python3 "$examples/l2_window.py" --json "$logs/l2.json"
step l2-figures python3 "$here/overlap_figures.py" "$logs/l2.json"
step l2-more-sms python3 "$examples/l2_window.py" --sms 64 --mib 8 16 --rounds 5 --patterns walk
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

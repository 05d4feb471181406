#!/usr/bin/env bash
# Runs the GPU suite from a build folder, also one copied from another machine:
#     tests/gpu/run.sh BUILD [FOLDER FOR LOGS]
# Needs a GPU of 132 SMs (H100 SXM, H200), as the checks require. Ends with "N passed, N failed".
set -uo pipefail
build=${1:?usage: tests/gpu/run.sh BUILD [FOLDER FOR LOGS]}
logs=${2:-$build/gpu-logs}
mkdir -p "$logs"
gcx=$build/src/cli/gcx
export LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset GCX_DRIVER
passed=0
failed=0

# step NAME COMMAND...: one test; its output goes to the log folder and to the terminal.
step() {
    local name=$1
    shift
    printf '== %s: %s\n' "$name" "$*"
    if "$@" 2>&1 | tee "$logs/$name.log"; then
        passed=$((passed + 1))
    else
        printf 'FAILED: %s\n' "$name"
        failed=$((failed + 1))
    fi
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
step suite "$build/tests/gpu/gcx-gpu-tests" "$build/src/libgcx.so.1"
step info "$gcx" info
step plan "$gcx" plan --sms 108,24
step split "$gcx" split --sms 108,24
step verify "$gcx" verify --sms 108,24 --svg "$logs/verify.svg"
step verify-fine "$gcx" verify --sms 10,122 --family fine
step verify-json "$gcx" verify --sms 8,16,24 --json
step record "$gcx" info --record "$logs/recorded.profile"
# A recording has no information about a selection of GPUs by CUDA_VISIBLE_DEVICES.
step replay env -u CUDA_VISIBLE_DEVICES GCX_DRIVER="sim:$logs/recorded.profile" "$gcx" verify --sms 108,24
step example-split "$build/examples/split"
step example-scenario "$build/examples/scenario"
step example-scenario-cpp "$build/examples/scenario-cpp"
step example-serving "$build/examples/serving"
step example-dlopen "$build/examples/dlopen" "$build/src/libgcx.so.1"
step bench "$gcx" bench
step bench-repartition "$gcx" bench repartition
step queues env -u CUDA_DEVICE_MAX_CONNECTIONS "$build/tests/gpu/gcx-gpu-queues"
if [ "$("$gcx" info --json | grep -c '"ordinal"')" -gt 1 ]; then
    step two-gpus "$build/tests/gpu/gcx-gpu-two-gpus"
else
    printf 'skipped: one GPU is not two\n'
fi
if command -v compute-sanitizer >/dev/null; then
    step memcheck compute-sanitizer --tool memcheck --error-exitcode 9 --leak-check full \
        --report-api-errors no \
        "$build/tests/gpu/gcx-gpu-tests" --quick
    step memcheck-verify compute-sanitizer --tool memcheck --error-exitcode 9 \
        "$gcx" verify --sms 108,24
    step racecheck compute-sanitizer --tool racecheck --error-exitcode 9 "$gcx" verify --sms 108,24
else
    printf 'skipped: compute-sanitizer is not installed\n'
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

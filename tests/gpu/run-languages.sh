#!/usr/bin/env bash
# Runs the scenario in other languages, and Go's tests, on a GPU of 132 SMs (H100 SXM, H200), as
# tests/gpu/pack-languages.sh packed them:
#     tests/gpu/run-languages.sh FOLDER [FOLDER FOR LOGS]
# Each program in FOLDER/bin has to split the device, and its probe to show 108 and 24 SMs, disjoint;
# a folder without FOLDER/bin has only Go's tests. Ends with "N passed, N failed".
set -uo pipefail
folder=$(realpath "${1:?usage: tests/gpu/run-languages.sh FOLDER [FOLDER FOR LOGS]}")
logs=$(realpath -m "${2:-gpu-logs}")
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
mkdir -p "$logs"
unset GCX_DRIVER

for packed in "$folder"/*.xz; do
    [ -e "$packed" ] || continue
    tool=$tools/$(basename "$packed" .xz)
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' \
        "$packed" >"$tool" || exit 2
    chmod +x "$tool"
done
export PATH=$tools:$PATH

# sms LOG PARTITION COUNT: its SMs, one a line, if their number is the one that was printed.
sms() {
    sed -n "s/^partition $2 runs on $3 SMs: //p" "$1" | tr ' ' '\n' | sort -u
}

# holds LOG: nothing simulated, 108 and 24 SMs, none in both, all 132 in one of them.
holds() {
    ! grep -q SIMULATED "$1" &&
        grep -q '^NVIDIA .*, 132 SMs$' "$1" &&
        [ "$(sms "$1" 0 108 | wc -l)" -eq 108 ] &&
        [ "$(sms "$1" 1 24 | wc -l)" -eq 24 ] &&
        [ -z "$(comm -12 <(sms "$1" 0 108) <(sms "$1" 1 24))" ] &&
        grep -q '^140 SMs: .*requested 140 SMs' "$1" &&
        grep -q '^given back: 0 contexts in use$' "$1"
}

# Lists Go's tests that pass on any driver with one device; the others need the simulation's two.
go_tests=(
    TestClosedObjectIsRefused TestStreamFollowsItsLease TestWaitIsCancelled
    TestEachGoroutineGetsItsOwnMessage TestContextIsCurrentInItsThread
    TestProgressIsReported TestProgressPanics
    TestGraphRunsWhereItIsLaunched TestKernelParametersAreCopied
)

# go_holds LOG: every test of the list has run and passed. A test that waits forever ends with a panic.
go_holds() {
    local names count
    names=$(IFS='|' && printf '%s' "${go_tests[*]}")
    GCX_TEST_DRIVER=libcuda.so.1 GCX_LIBRARY=$folder/libgcx.so.1 \
        "$folder/go-tests" -test.v -test.timeout=300s -test.run="^($names)\$" >"$1" 2>&1 || return 1
    count=$(grep -c '^--- PASS: ' "$1")
    printf '%d of %d tests passed\n' "$count" ${#go_tests[@]} >>"$1"
    [ "$count" -eq ${#go_tests[@]} ]
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
passed=0
failed=0
for program in "$folder"/bin/*; do
    [ -e "$program" ] || continue
    name=$(basename "$program")
    log=$logs/$name.log
    printf '== %s\n' "$name"
    if "$program" "$folder/libgcx.so.1" >"$log" 2>&1 && holds "$log"; then
        passed=$((passed + 1))
    else
        printf 'FAILED: %s\n' "$name"
        failed=$((failed + 1))
    fi
    cut -c 1-118 "$log"
done
log=$logs/go-tests.log
printf '== go-tests\n'
if go_holds "$log"; then
    passed=$((passed + 1))
else
    printf 'FAILED: go-tests\n'
    failed=$((failed + 1))
fi
cut -c 1-118 "$log"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

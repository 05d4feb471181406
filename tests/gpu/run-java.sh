#!/usr/bin/env bash
# Runs the Java package on a GPU from a folder that bindings/java/runtime.sh has made, with the
# runtime in that folder:
#     tests/gpu/run-java.sh FOLDER
# Ends with "N passed, N failed".
set -uo pipefail
folder=$(realpath "${1:?usage: tests/gpu/run-java.sh FOLDER}")
unset GCX_DRIVER
passed=0
failed=0

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d

java() {
    "$folder/runtime/bin/java" -Xcheck:jni "-Dgcx.work=$folder/libgcx-java-work.so" -cp "$folder/gcx.jar:$folder/programs" "$@" 2>&1
}

# check NAME PATTERN PROGRAM...: the program ends well, its output has a line like the pattern, and
# JNI's checks have no warning.
check() {
    local name=$1 pattern=$2 output status
    shift 2
    printf '== %s\n' "$name"
    output=$(java "$@")
    status=$?
    printf '%s\n' "$output"
    if [ "$status" -eq 0 ] && grep -qE "$pattern" <<<"$output" &&
        ! grep -q 'in native method' <<<"$output"; then
        passed=$((passed + 1))
    else
        printf 'FAILED: %s ended with status %d\n' "$name" "$status"
        failed=$((failed + 1))
    fi
}

check scenario '^no SM is in both$' Scenario
check 'on the GPU' ' passed, 0 failed$' gcx.OnGpu
for manner in exit halt hook return; do
    check "ends by $manner" '^live 2$' "gcx.EndTest\$Contexts" "$manner"
    check "ends by $manner, with leases" '^live 3$' "gcx.EndTest\$Leases" "$manner"
    check "ends by $manner, with graphs" '^launches$' "gcx.EndTest\$Graphs" "$manner"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

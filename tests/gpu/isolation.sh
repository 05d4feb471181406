#!/usr/bin/env bash
# What breaks the isolation of partitions, docs/explanation/isolation.md: all rows in one table.
#     tests/gpu/isolation.sh BUILD [WHEEL OF gcx]
# With a wheel also the rows of PyTorch, CuPy and NCCL, with the python3 that has them. Needs a GPU that
# nobody else uses; takes some ten minutes. A row fails if what is known of it isn't so any more; others
# pass whatever they say. Ends with "N passed, N failed".
set -uo pipefail
build=$(realpath "${1:?usage: tests/gpu/isolation.sh BUILD [WHEEL OF gcx]}")
wheel=${2:+$(realpath "$2")}
tests=$(cd "$(dirname "$0")" && pwd)
program=$build/tests/gpu/gcx-gpu-isolation
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset GCX_DRIVER CUDA_DEVICE_MAX_CONNECTIONS CUDA_MODULE_LOADING
lines=$folder/lines

# Keeps the lines of the table; what else is said goes to the terminal.
rows() { awk -F '\t' -v lines="$lines" 'NF == 16 { print >>lines; fflush(); next } { print >"/dev/stderr" }'; }

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
touch "$lines"
"$program" 2>&1 | rows
CUDA_MODULE_LOADING=EAGER "$program" --only launch --line 'eager loading' 2>&1 | rows
if command -v nsys >/dev/null; then
    nsys profile --output "$folder/profile" --trace-fork-before-exec true \
        "$program" --only nothing --line 'under nsys' 2>/dev/null | rows
else
    printf 'skipped: nsys is not installed\n'
fi
if [ -n "$wheel" ]; then
    python3 -m pip install -q --no-index --no-deps --target "$folder/site" "$wheel" || exit 2
    library=$(find "$build/tests/gpu" -name 'libgcx-gpu-critical.so' | head -n 1)
    PYTHONPATH=$folder/site PYTHONDONTWRITEBYTECODE=1 \
        python3 "$tests/python/isolation.py" "$library" 2>&1 | rows
else
    printf 'skipped: the rows of PyTorch, CuPy and NCCL, without a wheel of gcx\n'
fi

# The figures are of a kernel on 24 SMs: alone there, next to the row on the other 108, and in a plain
# stream next to the row in another.
awk -F '\t' '
    BEGIN {
        format = "%-42s %-7s %-7s %7s %7s %8s | %8s %8s %9s | %8s %8s %9s %6s\n"
        printf "%-42s %-15s %-24s | %-27s | %s\n", "", "", "alone, us", "in a partition", "plain streams"
        printf format, "another thread", "known", "seen", "p50", "p99", "max", "p50", "p99", "max", \
            "p50", "p99", "max", "calls"
    }
    {
        printf format, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14
        if ($16 != "passed") print "    " $16
        if ($16 ~ /^passed/) passed++
        if ($16 ~ /^FAILED/) failed++
    }
    END {
        printf "%d passed, %d failed\n", passed, failed
        exit !(passed > 0 && failed == 0)
    }' "$lines"

#!/usr/bin/env bash
# Runs the Python package's GPU tests from an installed wheel, with the python3 that has PyTorch and
# the rest:
#     tests/gpu/run-python.sh WHEEL [FOLDER FOR LOGS [FOLDER OF FURTHER WHEELS]]
# Further wheels are those that python3 lacks: pytest and its dependencies. Ends with "N passed, N failed".
set -uo pipefail
wheel=$(realpath "${1:?usage: tests/gpu/run-python.sh WHEEL [FOLDER FOR LOGS [FOLDER OF FURTHER WHEELS]]}")
logs=$(realpath -m "${2:-gpu-logs}")
tests=$(cd "$(dirname "$0")" && pwd)
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
mkdir -p "$logs"
unset GCX_DRIVER
further=()
[ -z "${3:-}" ] || further=("$3"/*.whl)
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel" "${further[@]}" || exit 2
export PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
python3 -c 'import gcx; assert not gcx.driver_info().simulated; print(gcx.driver_info())' || exit 2
passed=0
failed=0
# Each file runs in a separate process, which must end without an error.
for file in "$tests"/python/test_*.py; do
    name=$(basename "$file" .py)
    printf '== %s\n' "$name"
    python3 -m pytest -q -rs -s -p no:cacheprovider --rootdir "$tests/python" "$file" 2>&1 |
        tee "$logs/$name.log"
    status=${PIPESTATUS[0]}
    line=$(grep -E '^[0-9]+ (passed|failed|skipped).* in ' "$logs/$name.log" | tail -n 1)
    count() { printf '%s' "$line" | grep -oE "[0-9]+ $1" | cut -d ' ' -f 1; }
    good=$(count passed)
    bad=$(count failed)
    passed=$((passed + ${good:-0}))
    failed=$((failed + ${bad:-0}))
    # Catches errors at import or in a fixture, and a crash at the end of the interpreter.
    if [ "$status" -ne 0 ] && [ -z "$bad" ]; then
        printf 'FAILED: %s ended with status %d\n' "$name" "$status"
        failed=$((failed + 1))
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

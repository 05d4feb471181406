#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them. Without arguments: the core, the API, the
# command, the simulated driver and Python. The last line is "N passed, N failed".
#     tests/run.sh             # what a user wants to see pass
#     tests/run.sh PART...     # some parts, and only what they need is installed; see --list
#     tests/run.sh --all       # every part, as continuous integration does
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/setup.sh
. tools/setup.sh
# shellcheck source=tools/setup-rust.sh
. tools/setup-rust.sh

need python3 python3
install_missing
case " $* " in
*" --list "* | *" --help "* | *" -h "*) exec python3 -m tests.suite "$@" ;;
esac
rust=false
requirements=()
needs=$(python3 -m tests.suite --needs "$@")
while read -r kind what package; do
    case $kind/$what in
    tool/rust)
        rust=true
        need_rust
        ;;
    tool/*) need "$what" "$package" ;;
    python/*) requirements+=("$what") ;;
    esac
done <<<"$needs"
install_missing
if $rust; then check_rust; fi
for file in "${requirements[@]}"; do
    use_venv "$file"
done
exec python3 -m tests.suite "$@"

#!/usr/bin/env bash
# Measures reservations on a GPU: two processes under MPS, one big and one small, with reservations and
# without, and a third that requests the same SMs: docs/explanation/reservations.md.
#     tests/gpu/reservations.sh BUILD [SECONDS FOR EACH ROW]
# Starts a private MPS daemon, with private folders, and ends it. Needs exclusive use of a GPU of
# 132 SMs. Ends with "N passed, N failed".
# shellcheck source=tests/gpu/mps-common.sh
. "$(dirname "$0")/mps-common.sh"

mkdir -m 700 "$folder/run"
export GCX_RESERVATION_DIR=$folder/run # where the reservations are

# waiter SECONDS SMS: sets result and waited, in ms.
waiter() { read -r result waited < <("${under_mps[@]}" timeout 120 "$program" waiter "$1" "$2"); }

start_mps
row 'the small one alone' under_mps '' '' plain ''
alone=$p50
row 'the big one alone' under_mps plain '' '' ''
most=$rate
row 'plain MPS' under_mps plain '' plain ''
plain_p50=$p50 plain_p99=$p99
row 'reservations of 108 and 24 SMs' under_mps reserved-108 '' reserved-24 ''
check 'the small one has its latency' "$p50 < $alone * 4"
check 'its p99 is at most a tenth of that of plain MPS' "$p99 * 10 <= $plain_p99"
check 'the big one keeps 0.7 of its kernels: 108 of 132 SMs are 0.82' "$rate >= 0.7 * $most"
printf 'plain MPS: p50 %s us; with reservations %s us\n' "$plain_p50" "$p50"

# A third process, while two have reserved all SMs.
"${under_mps[@]}" "$program" hog 600 reserved-108 >/dev/null &
big=$!
started+=("$big")
"${under_mps[@]}" "$program" hog 600 reserved-24 >/dev/null &
small=$!
started+=("$small")
for _ in $(seq 100); do
    [ "$("$gcx" ps --json | grep -c '"sm_count": \(108\|24\)')" -eq 2 ] && break
    sleep 0.1
done
"$gcx" ps
"$gcx" ps | grep -q '132 reserved, 0 free'
check 'gcx ps shows both, and that nothing is free' "$? == 0"
"$gcx" ps --json | grep -q '"mps": "on"'
check 'gcx ps says that MPS shares the device' "$? == 0"
waiter 0 24
printf 'a third, without waiting: %s after %s ms\n' "$result" "$waited"
check 'it is refused' "\"$result\" == \"GCX_ERROR_ALREADY_ACQUIRED\""
waiter 2 24
printf 'a third, with 2 s: %s after %s ms\n' "$result" "$waited"
check 'it times out' "\"$result\" == \"GCX_ERROR_TIMEOUT\" && $waited >= 2000"
(sleep 2 && kill -KILL "$small") &
waiter 60 24
printf 'a third, while the small one is killed after 2 s: %s after %s ms\n' "$result" "$waited"
check 'it gets the SMs of the dead process' "\"$result\" == \"GCX_SUCCESS\" && $waited < 30000"
kill -KILL "$big"
wait "$big" "$small" 2>/dev/null
"$gcx" ps | grep -q 'no reservations'
check 'dead processes have no reservations' "$? == 0"

# Without MPS reservations succeed, and the log says that they isolate nothing.
"${without[@]}" "$program" waiter 0 24 | grep -q GCX_SUCCESS
check 'a reservation without MPS' "$? == 0"
GCX_LOG=warning "${without[@]}" "$program" waiter 0 24 2>&1 | grep -q 'reservations isolate nothing'
check 'the log says that it isolates nothing' "$? == 0"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

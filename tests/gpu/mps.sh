#!/usr/bin/env bash
# Measures two processes on one GPU, with and without MPS, partitioned or not: docs/guides/two-processes.md.
#     tests/gpu/mps.sh BUILD [SECONDS FOR EACH ROW]
# Starts a private MPS daemon, with private folders, and ends it. Needs exclusive use of a GPU of
# 132 SMs. Ends with "N passed, N failed".
# shellcheck source=tests/gpu/mps-common.sh
. "$(dirname "$0")/mps-common.sh"

row 'alone, no MPS' without '' '' plain ''
row 'no MPS, plain streams' without plain '' plain ''
slices=$p50
row 'no MPS, gcx 108 and 24' without 108 '' 24 ''
check 'without MPS a partition changes nothing' "$p50 > $slices / 3 && $p50 < $slices * 3"
"${without[@]}" "$gcx" info --json >"$folder/info" && grep -q '"state": "off"' "$folder/info"
check 'gcx info says that there is no MPS' "$? == 0"

start_mps
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

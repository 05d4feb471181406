#!/usr/bin/env bash
# The plugin of SGLang, gcx.engines.sglang, on a GPU. It has not run yet.
#     tests/gpu/sglang.sh WHEEL [FOLDER FOR LOGS]
# Expects a folder .sgl at the root of the sources, which git ignores, with
#     run.sh                   unpacks SGLang 0.5.16 below SGL_DIR and runs the benchmark:
#                              run.sh check, and run.sh chunked|gcx ARGUMENTS OF THE BENCHMARK
#     bench_sglang.py          the benchmark: prints lines "RESULT {json}"
#     sglang-carry.tar.gz      SGLang and what it needs beyond python3's torch and transformers
# and python3 with those two. Starts SGLang's default and the plugin, with GCX_PROMISE_MS of 13 and of 20 or as
# the environment has it, serves prompts next to 32 decodes, and compares greedy tokens. Takes some eight
# minutes. Ends with "N passed, N failed".
set -uo pipefail
wheel=$(realpath "${1:?usage: tests/gpu/sglang.sh WHEEL [FOLDER FOR LOGS]}")
logs=$(realpath -m "${2:-gpu-logs}")
cd "$(dirname "$0")/../.." || exit 2
[ -e .sgl/run.sh ] || {
    printf 'error: there is no .sgl/run.sh; see the head of %s\n' "$0" >&2
    exit 2
}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
mkdir -p "$logs"
unset GCX_DRIVER CUDA_DEVICE_MAX_CONNECTIONS
export OUT=$logs SGL_DIR=${SGL_DIR:-/tmp/sgl} GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel" || exit 2

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%Y-%m-%d
passed=0
failed=0
# verdict NAME STATUS
verdict() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        printf 'FAILED: %s\n' "$1"
        failed=$((failed + 1))
    fi
}

bash .sgl/run.sh check
verdict check $?
rm -rf "$SGL_DIR"/gcx_sglang* # an earlier sketch, whose entry point has the plugin's name

# bench ARM TAG: one run of the benchmark must have served all its prompts.
bench() {
    TAG=-$2 GCX_PATH=$site bash .sgl/run.sh "$1" --layers 16 --rates 3 --seconds 14 \
        --graph-bs 8,32,40,64 --drain 12 | tee "$logs/bench-$2.txt"
    grep -q '^RESULT .*"unfinished": 0, "errors": \[\]' "$logs/bench-$2.txt"
    verdict "benchmark, $2" $?
}
bench chunked default
for promise in ${GCX_PROMISE_MS:-13 20}; do
    GCX_PROMISE_MS=$promise bench gcx "promise-$promise"
    grep -h 'gcx.engines.sglang\|connections\|promises' "$logs/gcx-promise-$promise.log" | head -n 20
done

# The environment of the carried SGLang, as run.sh sets it for the benchmark.
export PYTHONPATH=$SGL_DIR:$site PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
export SGLANG_IS_FLASHINFER_AVAILABLE=false TVM_FFI_CACHE_DIR=$SGL_DIR/jitcache TOKENIZERS_PARALLELISM=false
SGLANG_DISABLED_MODEL_ARCHS=$(find "$SGL_DIR/sglang/srt/models" -maxdepth 1 -name '*.py' -printf '%f\n' |
    sed 's/\.py$//' | grep -vx 'llama\|__init__\|registry\|utils' | paste -sd,)
export SGLANG_DISABLED_MODEL_ARCHS
tokens=tests/gpu/python/sglang_tokens.py
python3 "$tokens" model "$logs/model"
SGLANG_PLUGINS=none python3 "$tokens" run default "$logs/model" "$logs/default.json" >"$logs/tokens-default.log" 2>&1
verdict 'tokens of the default' $?
SGLANG_PLUGINS=gcx GCX_PROMISE_MS=20 python3 "$tokens" run gcx "$logs/model" "$logs/gcx.json" \
    >"$logs/tokens-gcx.log" 2>&1
verdict 'tokens of the plugin' $?
python3 "$tokens" compare "$logs/default.json" "$logs/gcx.json"
verdict 'same greedy tokens' $?

# What it refuses ends the engine with a sentence.
SGLANG_PLUGINS=gcx python3 - "$logs/model" >"$logs/refused.log" 2>&1 <<'PY'
import sys

from sglang.srt.plugins import load_plugins
from sglang.srt.server_args import ServerArgs

load_plugins()
arguments = ServerArgs(model_path=sys.argv[1], skip_tokenizer_init=True)
arguments.enable_pdmux = arguments.enable_lora = True
arguments.check_server_args()
PY
grep 'enable_lora is True; serve LoRA adapters without' "$logs/refused.log"
verdict 'refuses LoRA' $?
rm -rf "$logs/model"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

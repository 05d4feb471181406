#!/usr/bin/env bash
# The plugin of SGLang, gcx.engines.sglang, on a GPU, next to SGLang's own schedulers.
#     [ARMS=...] [RATES=3,3] [LAYERS=16] [LONG=16384] tests/gpu/sglang.sh WHEEL [FOLDER FOR LOGS]
# Expects a folder .sgl at the root of the sources, which git ignores, with
#     bench_sglang.py          the benchmark: prints lines "RESULT {json}"
#     sglang-carry.tar.gz      SGLang 0.5.16 and what it needs beyond python3's torch and transformers
# and python3 with those two. ARMS are words of default, chunk-N (the default with chunks of N tokens),
# mixed-BACKEND (with mixed chunks and that backend of attention), pdmux, streams, pair-N, promise-N (the
# plugin, with a promise of N ms). Each arm serves random prompts next to 32 decodes of LONG tokens, in a
# window for each rate (prompts a second). The arms start together and run one after the other: 80 s, and
# for each arm 6 s and 22 s a window. Then greedy tokens of the plugin and of the default are compared.
# 32 LAYERS need LONG=4096 in 80 GB. TRACE=1 keeps what the plugin's loop did, AS_SHIPPED=1 unpacks SGLang
# without the repairs that pdmux needs. Two runs at the same time need a PORT and an SGL_DIR each.
# Ends with "N passed, N failed".
set -uo pipefail
wheel=$(realpath "${1:?usage: tests/gpu/sglang.sh WHEEL [FOLDER FOR LOGS]}")
logs=$(realpath -m "${2:-gpu-logs}")
cd "$(dirname "$0")/../.." || exit 2
[ -e .sgl/bench_sglang.py ] || {
    printf 'error: there is no .sgl/bench_sglang.py; see the head of %s\n' "$0" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$logs" "$work/arms/gcx_arms-1.dist-info"
unset GCX_DRIVER CUDA_DEVICE_MAX_CONNECTIONS
sgl=${SGL_DIR:-/tmp/sgl${AS_SHIPPED:+-as-shipped}}
if [ ! -e "$sgl/.unpacked" ]; then
    mkdir -p "$sgl" && tar xf .sgl/sglang-carry.tar.gz -C "$sgl" && touch "$sgl/.unpacked" || exit 2
    rm -rf "$sgl"/gcx_sglang* # an earlier sketch, whose entry point has the plugin's name
    mixin=$sgl/sglang/srt/multiplex/multiplexing_mixin.py
    # The plugin works without the two names that SGLang 0.5.16 lacks and the carried files have.
    [ -z "${AS_SHIPPED:-}" ] || sed -i 's/self\.ps\.\(gpu_id\|tp_size\)\b/self.\1/' "$mixin" || exit 2
    [ -z "${AS_SHIPPED:-}" ] || [ "$(grep -c 'self\.\(gpu_id\|tp_size\)\b' "$mixin")" -eq 2 ] || {
        printf 'error: %s does not lack the two names\n' "$mixin" >&2
        exit 2
    }
fi
python3 -m pip install -q --no-index --no-deps --target "$work/site" "$wheel" || exit 2
python3 -m compileall -q -j 0 "$sgl" >/dev/null # once, rather than in each process
cp tests/gpu/python/sglang_arms.py "$work/arms"
printf 'Metadata-Version: 2.1\nName: gcx-arms\nVersion: 1\n' >"$work/arms/gcx_arms-1.dist-info/METADATA"
printf '[sglang.srt.plugins]\narms = sglang_arms:register\n' >"$work/arms/gcx_arms-1.dist-info/entry_points.txt"

export PYTHONPATH=$sgl:$work/arms:$work/site PYTHONUNBUFFERED=1 SGLANG_PLUGINS=arms
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false USE_TF=0 USE_FLAX=0
export SGLANG_IS_FLASHINFER_AVAILABLE=false TVM_FFI_CACHE_DIR=$sgl/jitcache SGLANG_DISABLE_REQUEST_LOGGING=1
export GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo
SGLANG_DISABLED_MODEL_ARCHS=$(find "$sgl/sglang/srt/models" -maxdepth 1 -name '*.py' -printf '%f\n' |
    sed 's/\.py$//' | grep -vx 'llama\|__init__\|registry\|utils' | paste -sd,)
export SGLANG_DISABLED_MODEL_ARCHS

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

# in_turn NUMBER COMMAND...: the command's scheduler begins once the command before has ended.
in_turn() {
    local number=$1 status
    shift
    GCX_ARM_GATE=$work/gate-$number "$@"
    status=$?
    touch "$work/gate-$((number + 1))"
    return $status
}

# bench NUMBER ARM: one run of the benchmark.
bench() {
    local number=$1 name=$2 arm=$2 kind=gcx more=() environment=()
    case $name in
    default) kind=chunked ;;
    chunk-*) arm=default kind=chunked more=(--chunk "${name#chunk-}") ;;
    mixed-*) arm=default kind=chunked more=(--mixed --attention "${name#mixed-}") ;;
    pdmux) kind=pdmux ;;
    promise-*) arm=promise environment=("GCX_PROMISE_MS=${name#promise-}") ;;
    esac
    [ -z "${TRACE:-}" ] || environment+=("GCX_ARM_TRACE=$logs/trace-$name.jsonl")
    in_turn "$number" env "GCX_ARM=$arm" "${environment[@]}" timeout 540 python3 .sgl/bench_sglang.py --arm "$kind" \
        "${more[@]}" --layers "${LAYERS:-16}" --rates "${RATES:-3,3}" --seconds 14 --graph-bs 8,32,40,64 --drain 12 \
        --long-tokens "${LONG:-16384}" \
        --model-dir "$work/model-$name" --port $((${PORT:-30000} + 100 * number)) >"$logs/$name.log" 2>&1
}

# tokens NUMBER KIND ARM: greedy tokens of a small model with scaled random weights.
tokens() {
    in_turn "$1" env "GCX_ARM=$3" GCX_PROMISE_MS=20 timeout 540 python3 tests/gpu/python/sglang_tokens.py \
        run "$2" "$work/model" "$logs/tokens-$2.json" >"$logs/tokens-$2.log" 2>&1
}

python3 tests/gpu/python/sglang_tokens.py model "$work/model" || exit 2
number=0
names=()
running=()
for name in ${ARMS:-default pdmux streams pair-48 promise-13 promise-20}; do
    bench "$number" "$name" &
    names+=("$name")
    running+=($!)
    number=$((number + 1))
done
for kind in default gcx; do
    tokens "$number" "$kind" "${kind/gcx/promise}" &
    names+=("tokens of $kind")
    running+=($!)
    number=$((number + 1))
done
touch "$work/gate-0"
for number in "${!running[@]}"; do
    name=${names[number]}
    wait "${running[number]}"
    status=$?
    case $name in
    tokens*) ;;
    *)
        printf '== %s\n' "$name"
        grep -hE '^RESULT|^engine up|Capture target decode CUDA graph end|promises .* a token|Error:' "$logs/$name.log"
        [ "$(grep -c '^RESULT .*"unfinished": 0, "errors": \[\]' "$logs/$name.log")" -eq \
            "$(tr ',' '\n' <<<"${RATES:-3,3}" | wc -l)" ] || status=1
        ;;
    esac
    verdict "$name" "$status"
done
python3 tests/gpu/python/sglang_tokens.py compare "$logs/tokens-default.json" "$logs/tokens-gcx.json"
verdict 'same greedy tokens' $?

# What it refuses ends the engine with a sentence.
SGLANG_PLUGINS=gcx python3 - "$work/model" >"$logs/refused.log" 2>&1 <<'PY'
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
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

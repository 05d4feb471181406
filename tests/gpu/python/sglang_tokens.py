"""Greedy tokens of SGLang, with which tests/gpu/sglang.sh compares the plugin and the default
scheduler.

    python sglang_tokens.py model FOLDER               # writes a small Llama with random weights
    python sglang_tokens.py run default|gcx FOLDER OUT # prompts one at a time, then all at once
    python sglang_tokens.py compare OUT OTHER          # ends with "N passed, N failed"

At the first token that differs from the default's, one prompt at a time, the logits of both
candidates must be close in both runs. The default with all prompts at once is the control.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

LENGTHS = (16, 100, 513, 1024, 2000, 4096, 64, 3000, 257, 1500)
NEW_TOKENS, CANDIDATES = 64, 5
CLOSE = 0.05  # Between the logits of two candidates.
CONFIG: dict[str, Any] = {
    **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"},
    **{"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 8, "head_dim": 128},
    **{"num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000},
    **{"max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0},
    **{"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False},
    **{"bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16", "dtype": "bfloat16"},
}
#: Of an arm and "alone" or "together", each prompt's tokens with their candidates' logarithms.
Answers = dict[str, list[list[tuple[int, dict[str, float]]]]]


def write_model(folder: Path) -> None:
    """Writes weights of such a size that activations neither vanish nor grow."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(1)
    hidden, inner, vocab = (
        CONFIG[name] for name in ("hidden_size", "intermediate_size", "vocab_size")
    )
    values = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]

    def matrix(rows: int, columns: int) -> Any:
        return (torch.randn(rows, columns) * columns**-0.5).to(torch.bfloat16)

    weights = {"model.embed_tokens.weight": matrix(vocab, hidden) * hidden**0.5}
    for layer in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, rows, columns in (
            ("self_attn.q_proj", hidden, hidden),
            ("self_attn.k_proj", values, hidden),
            ("self_attn.v_proj", values, hidden),
            ("self_attn.o_proj", hidden, hidden),
            ("mlp.gate_proj", inner, hidden),
            ("mlp.up_proj", inner, hidden),
            ("mlp.down_proj", hidden, inner),
        ):
            weights[f"{at}{name}.weight"] = matrix(rows, columns)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{at}{name}.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
    weights["model.norm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
    weights["lm_head.weight"] = matrix(vocab, hidden)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "generation_config.json").write_text("{}")


def run(arm: str, folder: Path, out: Path) -> None:
    from sglang.srt.entrypoints.engine import Engine

    multiplexed = {"enable_pdmux": True, "disable_overlap_schedule": True}
    engine = Engine(
        model_path=str(folder), skip_tokenizer_init=True, dtype="bfloat16", random_seed=1,
        attention_backend="triton", sampling_backend="pytorch", grammar_backend="none",
        disable_radix_cache=True, disable_custom_all_reduce=True, disable_prefill_cuda_graph=True,
        mem_fraction_static=0.6, max_running_requests=16, cuda_graph_bs_decode=[1, 2, 4, 8, 16],
        skip_server_warmup=True, chunked_prefill_size=-1, **multiplexed if arm == "gcx" else {},
    )  # fmt: skip
    chance = random.Random(1)
    prompts = [[chance.randrange(10, 32000) for _ in range(length)] for length in LENGTHS]

    def answers(inputs: list[list[int]]) -> list[list[tuple[int, dict[str, float]]]]:
        found = engine.generate(
            input_ids=inputs,
            sampling_params={"temperature": 0, "max_new_tokens": NEW_TOKENS, "ignore_eos": True},
            return_logprob=True,
            top_logprobs_num=CANDIDATES,
        )
        infos = [one["meta_info"] for one in found]
        return [
            [
                (token, {str(candidate): log for log, candidate, _ in candidates})
                for (_, token, _), candidates in zip(
                    info["output_token_logprobs"], info["output_top_logprobs"]
                )
            ]
            for info in infos
        ]

    results: Answers = {
        "alone": [answers([prompt])[0] for prompt in prompts],
        "together": answers(prompts),
    }
    out.write_text(json.dumps(results))
    engine.shutdown()


def difference(one: list[Any], other: list[Any]) -> tuple[int, float] | None:
    """Returns the first position with different tokens, and how far their logits are apart, at
    most; None if all are the same."""
    for position, ((token, logs), (theirs, their_logs)) in enumerate(zip(one, other)):
        if token == theirs:
            continue
        pair = str(token), str(theirs)
        if not all(name in found for name in pair for found in (logs, their_logs)):
            return position, float("inf")
        return position, max(abs(found[pair[0]] - found[pair[1]]) for found in (logs, their_logs))
    return None


def compare(default: Answers, plugin: Answers) -> int:
    passed = failed = 0
    wanted = default["alone"]
    for name, found in (
        ("default, all at once", default["together"]),
        ("plugin, one at a time", plugin["alone"]),
        ("plugin, all at once", plugin["together"]),
    ):
        same, apart, bad = 0, 0.0, 0
        for one, other in zip(wanted, found):
            differs = difference(one, other)
            complete = len(one) == len(other) == NEW_TOKENS
            same += differs is None
            apart = max(apart, 0.0 if differs is None else differs[1])
            bad += not complete or (differs is not None and differs[1] > CLOSE)
        row = {"tokens": name, "prompts": len(wanted), "same": same, "apart": apart, "bad": bad}
        print("RESULT", json.dumps(row))
        passed, failed = passed + (bad == 0), failed + (bad > 0)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["model", "run", "compare"])
    parser.add_argument("words", nargs="+")
    arguments = parser.parse_args()
    words = arguments.words
    if arguments.command == "model":
        write_model(Path(words[0]))
    elif arguments.command == "run":
        run(words[0], Path(words[1]), Path(words[2]))
    else:
        default, plugin = (json.loads(Path(word).read_text()) for word in words)
        return compare(default, plugin)
    return 0


if __name__ == "__main__":  # SGLang spawns its schedulers.
    status = main()
    sys.stdout.flush()
    os._exit(status)

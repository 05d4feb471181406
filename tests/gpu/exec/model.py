"""A model of dense layers and attention in bf16, as a server runs it, with random weights: times
of a prefill of 2048 tokens and of a decode step of 32 sequences in a captured graph, and the SM
count that PyTorch sees, as JSON.
"""

import json
import time

import torch
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS, INNER = 16, 4096, 32, 11008
PROMPT, BATCH, CONTEXT = 2048, 32, 1024


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


class Layer:
    def __init__(self) -> None:
        self.qkv = random(HIDDEN, 3 * HIDDEN) * 0.02
        self.out = random(HIDDEN, HIDDEN) * 0.02
        self.up = random(HIDDEN, 2 * INNER) * 0.02
        self.down = random(INNER, HIDDEN) * 0.02
        self.keys = random(BATCH, HEADS, CONTEXT, HIDDEN // HEADS)

    def mlp(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = (F.layer_norm(x, (HIDDEN,)) @ self.up).chunk(2, -1)
        return x + (F.silu(gate) * up) @ self.down

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            t.view(1, PROMPT, HEADS, -1).transpose(1, 2)
            for t in (F.layer_norm(x, (HIDDEN,)) @ self.qkv).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.mlp(x + attended.transpose(1, 2).reshape(PROMPT, HIDDEN) @ self.out)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        q = (F.layer_norm(x, (HIDDEN,)) @ self.qkv)[:, :HIDDEN].view(BATCH, HEADS, 1, -1)
        attended = F.scaled_dot_product_attention(q, self.keys, self.keys)
        return self.mlp(x + attended.view(BATCH, HIDDEN) @ self.out)


def main() -> None:
    torch.set_grad_enabled(False)
    layers = [Layer() for _ in range(LAYERS)]
    prompt = random(PROMPT, HIDDEN)
    tokens = random(BATCH, HIDDEN)

    def prefill() -> None:
        x = prompt
        for layer in layers:
            x = layer.prefill(x)

    def decode() -> None:
        x = tokens
        for layer in layers:
            x = layer.decode(x)

    for _ in range(3):
        prefill()
        decode()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decode()
    answer = {"reported": torch.cuda.get_device_properties("cuda").multi_processor_count}
    for name, work in (("prefill_ms", prefill), ("decode_ms", graph.replay)):
        times = []
        for _ in range(30):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
        answer[name] = sorted(times)[len(times) // 2]
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

"""Runs one of two programs that share a GPU, and prints its results as JSON:
interference.py big|loop|small SECONDS [PAUSE]. The big one makes large products without pause, the
loop products of 4,096 in fp32, as HAMi-core's pull request 317 does, and the small one small
products, so many seconds after each other.
"""

import gc
import json
import sys
import time

import torch

role, seconds = sys.argv[1], float(sys.argv[2])
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
if role == "big":
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = a.clone()
elif role == "loop":
    a = torch.randn(4096, 4096, device="cuda")
    b = a.clone()
else:
    a = torch.randn(32, 1024, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
for _ in range(20):
    a @ b
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()  # both start together
gc.disable()

end = time.perf_counter() + seconds
times = []
while time.perf_counter() < end:
    begin = time.perf_counter()
    a @ b
    torch.cuda.synchronize()
    times.append((time.perf_counter() - begin) * 1e6)
    # Stays awake in between, to exclude the wake-up time of the processor. With a pause the 99th
    # percentile is the host's; without one it is the GPU's.
    while role == "small" and time.perf_counter() < begin + pause:
        pass
times.sort()
print(
    json.dumps(
        {
            "p50_us": times[len(times) // 2],
            "p99_us": times[len(times) * 99 // 100],
            "per_second": len(times) / seconds,
        }
    )
)

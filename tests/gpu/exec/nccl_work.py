"""Runs one of two processes that add tensors by NCCL, one GPU each; prints "right"."""

import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
values = torch.full((10**6,), float(rank + 1), device="cuda")
for _ in range(10):
    whole = values.clone()
    dist.all_reduce(whole)
torch.cuda.synchronize()
if bool((whole == 3.0).all()):
    print("right", flush=True)
dist.destroy_process_group()

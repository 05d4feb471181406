"""The modules of examples/python/two_batch_overlap.py: two micro-batches that take turns.

schedule, arms, measure, report, timeline and ranks need no GPU; lanes uses only gcx; layers,
exchange and gpu use PyTorch, NCCL and the driver.
"""

"""What examples/python/two_batch_overlap.py is made of: two micro-batches that take turns.

schedule, arms, simulated, measure, report, timeline and ranks know nothing of a GPU; lanes is gcx
alone; layers, exchange, copies and gpu are PyTorch, NCCL and the driver.
"""

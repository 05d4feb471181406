"""The modules of examples/python/serving.py: decode and prefill on leases that are resized.

costs, machine, engine, arms, policy and simulated need no GPU; model, graphs and gpu use PyTorch
and gcx; report makes tables and plots.
"""

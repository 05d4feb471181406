"""What examples/python/serving.py is made of: decode beside prefill, on leases that change.

costs, machine, engine, arms, policy and simulated know nothing of a GPU; model, graphs and gpu are
PyTorch and gcx; report makes tables and plots of what was measured.
"""

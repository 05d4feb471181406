gcx-profile 1
# The layout is assumed: no recording of this GPU exists.
# NVIDIA A100 white paper: 108 SMs, GPCs of 7 or 8 TPCs with 2 SMs each; seven GPCs fit that.
name NVIDIA A100-SXM4-80GB
description A100 SXM 80 GB: 108 SMs, compute capability 8.0; layout assumed
compute_capability 8.0
sm_count 108
memory_bytes 85094825984    # 81153 MiB usable of 80 GB, assumed as typical
clock_khz 1410000    # data sheet: boost clock
memory_clock_khz 1593000    # data sheet: 2039 GB/s over 5120 bits
memory_bus_bits 5120    # white paper
l2_bytes 41943040    # white paper: 40 MB
threads_per_sm 2048    # CUDA C++ Programming Guide, table of compute capabilities
blocks_per_sm 32    # CUDA C++ Programming Guide, table of compute capabilities
registers_per_sm 65536    # CUDA C++ Programming Guide, table of compute capabilities
shared_memory_per_sm 167936    # CUDA C++ Programming Guide, table of compute capabilities: 164 KB
shared_memory_per_block_optin 166912    # CUDA C++ Programming Guide, table of compute capabilities: 163 KB
gpc_sizes 16 16 16 16 16 14 14

gcx-profile 1
# The layout is assumed: no recording of this GPU exists.
# Jetson AGX Orin data sheet: two GPCs of 4 TPCs with 2 SMs each.
name Orin
description Jetson AGX Orin 64 GB: 16 SMs, compute capability 8.7; layout assumed
compute_capability 8.7
sm_count 16
memory_bytes 65897000960    # 62845 MiB usable of 64 GB, assumed as typical
clock_khz 1300500    # data sheet
memory_clock_khz 1600000    # data sheet: 204.8 GB/s over 256 bits
memory_bus_bits 256    # data sheet
l2_bytes 4194304    # data sheet: 4 MB
threads_per_sm 1536    # CUDA C++ Programming Guide, table of compute capabilities, 8.7
blocks_per_sm 16    # CUDA C++ Programming Guide, table of compute capabilities
registers_per_sm 65536    # CUDA C++ Programming Guide, table of compute capabilities
shared_memory_per_sm 167936    # CUDA C++ Programming Guide, table of compute capabilities: 164 KB
shared_memory_per_block_optin 166912    # CUDA C++ Programming Guide, table of compute capabilities: 163 KB
integrated 1    # memory is shared with the CPU
gpc_sizes 8 8

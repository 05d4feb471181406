gcx-profile 1
# The layout is assumed: no recording of this GPU exists.
# NVIDIA Ada white paper: AD102 has twelve GPCs of 6 TPCs with 2 SMs each; 142 of its 144 SMs.
name NVIDIA L40S
description L40S: 142 SMs, compute capability 8.9; layout assumed
compute_capability 8.9
sm_count 142
memory_bytes 47697362944    # 45488 MiB usable of 48 GB with ECC, assumed as typical
clock_khz 2520000    # data sheet: boost clock
memory_clock_khz 9001000    # data sheet: 864 GB/s
l2_bytes 100663296    # data sheet: 96 MB
threads_per_sm 1536    # CUDA C++ Programming Guide, table of compute capabilities, 8.9
blocks_per_sm 24    # CUDA C++ Programming Guide, table of compute capabilities
registers_per_sm 65536    # CUDA C++ Programming Guide, table of compute capabilities
shared_memory_per_sm 102400    # CUDA C++ Programming Guide, table of compute capabilities: 100 KB
shared_memory_per_block_optin 101376    # CUDA C++ Programming Guide, table of compute capabilities: 99 KB
memory_bus_bits 384    # data sheet
gpc_sizes 12 12 12 12 12 12 12 12 12 12 12 10

gcx-profile 1
# The layout is assumed: no recording of this GPU exists.
# 148 SMs is public; eight GPCs of 9 or 10 TPCs, four on each die, fit that.
name NVIDIA B200
description B200: 148 SMs in two dies, compute capability 10.0; layout assumed
compute_capability 10.0
sm_count 148
memory_bytes 191503138816    # 182631 MiB, assumed as typical of 180 GB usable
clock_khz 1965000    # assumed: boost clock
memory_clock_khz 3996000    # data sheet: 8 TB/s over 8192 bits
memory_bus_bits 8192    # data sheet
l2_bytes 132644864    # assumed: 126.5 MB
threads_per_sm 2048    # CUDA C++ Programming Guide, table of compute capabilities, 10.0
blocks_per_sm 32    # CUDA C++ Programming Guide, table of compute capabilities
registers_per_sm 65536    # CUDA C++ Programming Guide, table of compute capabilities
shared_memory_per_sm 233472    # CUDA C++ Programming Guide, table of compute capabilities: 228 KB
shared_memory_per_block_optin 232448    # CUDA C++ Programming Guide, table of compute capabilities: 227 KB
max_cluster_size 16    # CUDA C++ Programming Guide, table of compute capabilities: 8 portable, 16 non-portable
gpc_sizes 18 18 18 20 18 18 18 20
# Two dies, so two domains of half the GPCs each: assumed. What each domain is sure to have:
locality_domain_sm_count 72
locality_domain 0 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 32 33 34 35 36 37 38 39 48 49 50 51 52 53 54 55 64 65 66 67 68 69 70 71 80 81 82 83 84 85 86 87 96 97 98 99 100 101 102 103 112 113 114 115 116 117 118 119 128 129 130 131 132 133 134 135 144 145
locality_domain 1 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 40 41 42 43 44 45 46 47 56 57 58 59 60 61 62 63 72 73 74 75 76 77 78 79 88 89 90 91 92 93 94 95 104 105 106 107 108 109 110 111 120 121 122 123 124 125 126 127 136 137 138 139 140 141 142 143 146 147

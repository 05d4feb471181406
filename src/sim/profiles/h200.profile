gcx-profile 1
# The layout is recorded: facts h200-driver580-clusters and h200-driver580-sets-and-graphs, driver 580.159.04
# (CUDA 13.0), one die; its sets are those of the recorded H100.
name NVIDIA H200
description H200 SXM: 132 SMs, compute capability 9.0; layout recorded on driver 580.159.04
driver 13.0
compute_capability 9.0
sm_count 132                # recorded
min_partition_size 8        # recorded
coscheduled_alignment 8     # recorded
memory_bytes 150754820096   # 143771 MiB, as nvidia-smi shows
clock_khz 1980000           # data sheet: boost clock of the SXM part
memory_clock_khz 3201000    # data sheet: 4.8 TB/s over 6144 bits
memory_bus_bits 6144        # data sheet
l2_bytes 52428800           # 50 MB, NVIDIA H100 architecture white paper
threads_per_sm 2048         # CUDA C++ Programming Guide, table of compute capabilities, 9.0
blocks_per_sm 32            # same table
registers_per_sm 65536      # same table
shared_memory_per_sm 233472 # same table: 228 KB
shared_memory_per_block_optin 232448 # same table: 227 KB
max_cluster_size 16         # recorded: cuOccupancyMaxPotentialClusterSize, non-portable allowed
dynamic_parallelism_sms 124 125 # recorded: docs/measurements/log.md

# Which SMs can hold one cluster together. This reproduces every recorded figure of
# cuOccupancyMaxActiveClusters and every recorded set of flag 2; that these are the GPCs, the
# last four being TPCs that the driver pairs with nobody, is what those figures say.
gpc 0 1 16 17 32 33 48 49
gpc 2 3 18 19 34 35 50 51 64 65 78 79 92 93 106 107
gpc 4 5 20 21 36 37 52 53 66 67 80 81 94 95 108 109
gpc 6 7 22 23 38 39 54 55 68 69 82 83 96 97 110 111
gpc 8 9 24 25 40 41 56 57 70 71 84 85 98 99 112 113
gpc 10 11 26 27 42 43 58 59 72 73 86 87 100 101 114 115
gpc 12 13 28 29 44 45 60 61 74 75 88 89 102 103 116 117 120 121
gpc 14 15 30 31 46 47 62 63 76 77 90 91 104 105 118 119 122 123
gpc 124 125
gpc 126 127
gpc 128 129
gpc 130 131

# cuDevSmResourceSplitByCount(nb=132, flags=0, minCount=8): recorded.
family coscheduled
group 0 1 16 17 32 33 48 49
group 2 3 18 19 34 35 50 51
group 4 5 20 21 36 37 52 53
group 6 7 22 23 38 39 54 55
group 8 9 24 25 40 41 56 57
group 10 11 26 27 42 43 58 59
group 12 13 28 29 44 45 60 61
group 14 15 30 31 46 47 62 63
group 64 65 78 79 92 93 106 107
group 66 67 80 81 94 95 108 109
group 68 69 82 83 96 97 110 111
group 70 71 84 85 98 99 112 113
group 72 73 86 87 100 101 114 115
group 74 75 88 89 102 103 116 117
group 76 77 90 91 104 105 118 119
remainder 120 121 122 123 124 125 126 127 128 129 130 131

# nb=132, flags=1, minCount=2. Recorded: the first 14 groups that the log shows, and the sets of
# direct splits of 8 to 128 SMs, which leave the order within 16 to 119 to the rule seen there.
family fine
group 0 1
group 2 3
group 4 5
group 6 7
group 8 9
group 10 11
group 12 13
group 14 15
group 124 125
group 126 127
group 128 129
group 130 131
group 16 17
group 18 19
group 20 21
group 22 23
group 24 25
group 26 27
group 28 29
group 30 31
group 32 33
group 34 35
group 36 37
group 38 39
group 40 41
group 42 43
group 44 45
group 46 47
group 48 49
group 50 51
group 52 53
group 54 55
group 56 57
group 58 59
group 60 61
group 62 63
group 64 65
group 66 67
group 68 69
group 70 71
group 72 73
group 74 75
group 76 77
group 78 79
group 80 81
group 82 83
group 84 85
group 86 87
group 88 89
group 90 91
group 92 93
group 94 95
group 96 97
group 98 99
group 100 101
group 102 103
group 104 105
group 106 107
group 108 109
group 110 111
group 112 113
group 114 115
group 116 117
group 118 119
group 120 121
group 122 123

# nb=132, flags=2, minCount=8: the counts are recorded to be those of flags 0, and the first group.
family max-cluster
group 0 1 16 17 32 33 48 49
group 2 3 18 19 34 35 50 51
group 4 5 20 21 36 37 52 53
group 6 7 22 23 38 39 54 55
group 8 9 24 25 40 41 56 57
group 10 11 26 27 42 43 58 59
group 12 13 28 29 44 45 60 61
group 14 15 30 31 46 47 62 63
group 64 65 78 79 92 93 106 107
group 66 67 80 81 94 95 108 109
group 68 69 82 83 96 97 110 111
group 70 71 84 85 98 99 112 113
group 72 73 86 87 100 101 114 115
group 74 75 88 89 102 103 116 117
group 76 77 90 91 104 105 118 119
remainder 120 121 122 123 124 125 126 127 128 129 130 131

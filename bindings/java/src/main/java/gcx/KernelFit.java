package gcx;

/**
 * How much of a kernel fits a stream's SMs at once, when nothing else is there.
 *
 * @param smCount SMs that the stream's kernels can run on
 * @param blocksPerSm blocks of the kernel that an SM holds at once; 0: it can't run
 * @param maxBlocks the largest grid that runs all at once, and so the largest cooperative one
 * @param maxClusters clusters that run at once; 0 without clusters
 * @param maxClusterBlocks the most blocks that a cluster of this kernel can have; 1 on a device
 *     without clusters; 0: it can't run
 */
public record KernelFit(
    int smCount, int blocksPerSm, int maxBlocks, int maxClusters, int maxClusterBlocks) {}

package gcx;

/**
 * A graph, and what it came to since it was made.
 *
 * @param device the device's number
 * @param nodePriorities whether kernels run with the priorities that they were captured with
 * @param nodeCount its nodes, those of child graphs too
 * @param kernelCount of these, kernels
 * @param partCount its parts, each of which can have SMs of its own
 * @param executables executables that are kept now, one for each set of SMs
 * @param maxExecutables how many are kept
 * @param launches its launches
 * @param made executables made
 * @param evicted of these, given up for the limit
 */
public record GraphInfo(
    int device,
    boolean nodePriorities,
    int nodeCount,
    int kernelCount,
    int partCount,
    int executables,
    int maxExecutables,
    long launches,
    long made,
    long evicted) {}

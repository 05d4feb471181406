package gcx;

/**
 * A node of a graph; its number is its place in {@link Graph#nodes}. What kernels alone have is 0
 * of others.
 *
 * @param kind what it does
 * @param parent the number of the node whose child graph it is in; {@link #NO_PARENT}
 * @param part the part it is of
 * @param cooperative whether it is a cooperative launch
 * @param grid blocks
 * @param block threads
 * @param cluster blocks of a cluster; 0 without clusters
 * @param sharedBytes dynamic shared memory of a block
 * @param blocksPerSm blocks that an SM holds at once, without others'. The largest grid whose
 *     blocks may wait for each other is this times the partition's SMs
 * @param name the kernel's name, as compiled
 */
public record GraphNode(
    GraphNodeKind kind,
    int parent,
    int part,
    boolean cooperative,
    Dim grid,
    Dim block,
    Dim cluster,
    int sharedBytes,
    int blocksPerSm,
    String name) {
  /** As a parent: the node is in no child graph. */
  public static final int NO_PARENT = -1;
}

package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A CUDA graph that was captured once, by whoever and wherever, and is launched on the SMs of any
 * stream. One executable is made for each set of SMs, at the first launch there or ahead of time,
 * and kept. It works on the memory that it was captured with, which must live as long as it is
 * launched.
 *
 * <p>Nodes have numbers, their place in {@link #nodes}. A graph that forks over several partitions
 * has several parts, each of which can have SMs of its own.
 *
 * <p>Every method may be called from any thread, at any time. Launches on one set of SMs run one
 * after the other, those on different ones side by side, on the same memory. Tested on the
 * simulated driver and on an H200.
 */
public final class Graph extends Owned {
  private Graph(long handle) {
    super(handle, Natives::gcx_graph_destroy);
  }

  /**
   * A copy of a captured graph, of which up to 16 executables are kept.
   *
   * @param captured a CUgraph, which is a cudaGraph_t, such as JCuda's; it stays the caller's, and
   *     can be destroyed at once
   * @param options how its kernels run
   * @return the graph, to be closed by the caller
   * @throws GcxException.NotSupported a node can't be moved; the message has its kind and number
   * @throws GcxException.ResourceConfiguration it has kernels of two devices, or of more than 16
   *     contexts
   * @throws GcxException.InvalidContext it has no kernels, and no context is current that tells its
   *     device
   */
  public static Graph create(long captured, GraphOption... options) {
    return new Graph(Functions.gcx_graph_create(captured, GraphOption.flags(options), 0));
  }

  /**
   * The same with another limit.
   *
   * @param captured as of the other
   * @param maxExecutables how many executables are kept, at least 1: the last used
   * @param options how its kernels run
   * @return the graph, to be closed by the caller
   */
  public static Graph create(long captured, int maxExecutables, GraphOption... options) {
    if (maxExecutables < 1) {
      throw new GcxException.InvalidValue(
          maxExecutables + " executables are no limit: a graph keeps one at least");
    }
    return new Graph(
        Functions.gcx_graph_create(captured, GraphOption.flags(options), maxExecutables));
  }

  /**
   * Launches it in the stream, all parts on the SMs that the stream has now. The first launch on a
   * set of SMs makes the executable, see {@link #prepare}; later ones cost what CUDA's own do. In a
   * stream that someone else made outside of partitions it runs as it was captured.
   *
   * @param stream a stream of its device
   * @throws GcxException.LaunchTooLarge a cooperative grid is larger than the SMs hold
   * @throws GcxException.InvalidDevice the stream is of another device
   * @throws GcxException.Capture the stream captures a graph
   * @throws GcxException.NotSupported the driver did not move a node as it was told
   */
  public void launch(Stream stream) {
    Functions.gcx_graph_launch(this, stream);
  }

  /**
   * Launches it in several streams: each part on the SMs of its own, in the first stream, behind
   * what all of them were given before; and what they are given afterwards runs behind it. Parts
   * with no order between them run side by side.
   *
   * @param streams one for each part
   * @throws GcxException.InvalidValue there are not as many as parts
   */
  public void launchParts(List<Stream> streams) {
    Functions.gcx_graph_launch_parts(this, List.copyOf(streams));
  }

  /**
   * Makes the executable for these SMs ahead of time, 1.3 to 2 us a node, and their contexts if
   * there are none; nothing if it is kept already. For a thread that has nothing else to do.
   *
   * @param resources the SMs of all parts, or one resource for each
   * @param options whether the SMs are those of leases
   * @throws GcxException.LaunchTooLarge a cooperative grid is larger than the SMs hold; the message
   *     has the kernel's name, its grid and the largest
   * @throws GcxException.InvalidValue there is neither one nor one for each part
   * @throws GcxException.InvalidDevice they are of another device
   * @throws GcxException.NotSupported the driver did not move a node as it was told
   */
  public void prepare(List<SmResource> resources, PrepareOption... options) {
    Functions.gcx_graph_prepare(this, List.copyOf(resources), PrepareOption.flags(options));
  }

  /**
   * Says which part nodes are of. At first there is one for each context that the kernels were
   * captured in. Executables for several sets of SMs are given up.
   *
   * @param part one of those that there are, or the next, which needs at least one node; below 16
   * @param nodes the numbers of nodes; a child graph's stands for all of its nodes. If there are
   *     none, nothing changes
   * @throws GcxException.InvalidValue there is no such node, or part; the part is the next, and
   *     there are no nodes
   */
  public void setPart(int part, int... nodes) {
    Functions.gcx_graph_set_part(this, nodes.clone(), part);
  }

  /**
   * Gives a kernel other parameters, in all executables or nowhere. Launches from then on have
   * them, work in flight has the former.
   *
   * @param node the number of the kernel's node
   * @param grid blocks
   * @param block threads
   * @param sharedBytes dynamic shared memory of a block
   * @param arguments from position to limit each argument at its place, as in a C struct, so in
   *     {@link ByteOrder#nativeOrder}, which is not a buffer's order at first; copied; null: those
   *     that it has
   * @throws GcxException.InvalidValue there is no such node, or it is not a kernel's; the arguments
   *     are too short, or of the other byte order; what the driver says of the parameters
   */
  public void setKernel(int node, Dim grid, Dim block, int sharedBytes, ByteBuffer arguments) {
    Functions.gcx_graph_set_kernel(
        this,
        node,
        checkedBytes(sharedBytes),
        grid.x(),
        grid.y(),
        grid.z(),
        block.x(),
        block.y(),
        block.z(),
        bytesOf(arguments));
  }

  static int checkedBytes(int bytes) {
    if (bytes < 0) {
      throw new GcxException.InvalidValue(bytes + " is no number of bytes");
    }
    return bytes;
  }

  /** The buffer stays as it is. */
  private static byte[] bytesOf(ByteBuffer arguments) {
    if (arguments == null) {
      return null;
    }
    if (arguments.hasRemaining() && arguments.order() != ByteOrder.nativeOrder()) {
      throw new GcxException.InvalidValue(
          "Graph.setKernel: arguments.order() is "
              + arguments.order()
              + ", but a kernel reads "
              + ByteOrder.nativeOrder()
              + "; call arguments.order(ByteOrder.nativeOrder()) before the first value is put");
    }
    byte[] bytes = new byte[arguments.remaining()];
    arguments.duplicate().get(bytes);
    return bytes;
  }

  /**
   * Takes over all parameters of another captured graph with the same nodes and order, as of the
   * same code captured again, in all executables or nowhere. Parts stay.
   *
   * @param captured a CUgraph, which stays the caller's
   * @throws GcxException.GraphUpdate the nodes or their order differ; the message says where
   */
  public void update(long captured) {
    Functions.gcx_graph_update(this, captured);
  }

  /**
   * Its nodes, in the order of cuGraphGetNodes, each child graph's right behind the node that
   * stands for it.
   *
   * @return the nodes; the place of each is its number
   */
  public List<GraphNode> nodes() {
    return List.of(Functions.gcx_graph_get_nodes(this));
  }

  /**
   * What is known of it.
   *
   * @return counts
   */
  public GraphInfo info() {
    return Functions.gcx_graph_get_info(this);
  }

  /**
   * Whether it was closed.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  /**
   * Gives it and its executables up. Work in flight finishes. Never waits. Closing again does
   * nothing.
   */
  @Override
  public void close() {
    super.close();
  }

  @Override
  public String toString() {
    return isOpen() ? "graph" : "graph, closed";
  }
}

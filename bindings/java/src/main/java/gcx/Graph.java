package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A CUDA graph that was captured once and is launched on the SMs of any stream;
 * docs/guides/graphs.md explains what moves. Each set of SMs has one executable, which is created
 * by the first launch there or by {@link #prepare}. The graph's memory must outlive its launches.
 *
 * <p>The number of a node is its index in {@link #nodes}. A graph that was captured over several
 * partitions has several parts, each of which can run on different SMs.
 *
 * <p>Launches on one set of SMs run one after the other, launches on different sets run
 * concurrently on the same memory. Tested on the simulated driver and on an H200.
 */
public final class Graph extends GraphMethods {
  private Graph(long handle) {
    super(handle, Natives::gcx_graph_destroy);
  }

  /**
   * Copies a captured graph, with a cache of up to 16 executables.
   *
   * @param captured a CUgraph, which is a cudaGraph_t; the caller may destroy it at once
   * @param options how its kernels run
   * @return the graph, to be closed by the caller
   * @see Raw#gcx_graph_create
   */
  public static Graph create(long captured, GraphOption... options) {
    return new Graph(Functions.gcx_graph_create(captured, GraphOption.flags(options), 0));
  }

  /**
   * Copies a captured graph, with another limit for the cache of executables.
   *
   * @param captured a CUgraph, as of {@link #create(long, GraphOption...)}
   * @param maxExecutables how many executables are cached, at least 1; the least recently used is
   *     evicted
   * @param options how its kernels run
   * @return the graph, to be closed by the caller
   */
  public static Graph create(long captured, int maxExecutables, GraphOption... options) {
    if (maxExecutables < 1) {
      throw new GcxException.InvalidValue(
          "Graph.create: maxExecutables is " + maxExecutables + "; it must be at least 1");
    }
    return new Graph(
        Functions.gcx_graph_create(captured, GraphOption.flags(options), maxExecutables));
  }

  /**
   * Launches all parts on the SMs that the stream has now.
   *
   * @param streams a stream of its device for all parts, or one for each
   * @see Raw#gcx_graph_launch
   */
  public void launch(Stream... streams) {
    Functions.gcx_graph_launch(this, List.of(streams));
  }

  /**
   * Creates the executable for these SMs, and missing contexts, unless it is cached.
   *
   * @param resources the SMs of all parts, or one resource for each
   * @param options whether the SMs are those of leases
   * @see Raw#gcx_graph_prepare
   */
  public void prepare(List<SmResource> resources, PrepareOption... options) {
    Functions.gcx_graph_prepare(this, List.copyOf(resources), PrepareOption.flags(options));
  }

  /**
   * Assigns nodes to a part.
   *
   * @param part an existing part, or the next one, which needs at least one node; below 16
   * @param nodes the numbers of nodes; that of a child graph stands for all its nodes
   * @see Raw#gcx_graph_set_part
   */
  public void setPart(int part, int... nodes) {
    Functions.gcx_graph_set_part(this, nodes.clone(), part);
  }

  /**
   * Changes the parameters of a kernel for later launches, in all executables or in none.
   *
   * @param node the number of the kernel's node
   * @param grid blocks
   * @param block threads
   * @param sharedBytes dynamic shared memory of a block
   * @param arguments the arguments from position to limit, laid out as in a C struct, in {@link
   *     ByteOrder#nativeOrder}, which a new buffer does not have; copied; null to keep the present
   *     ones
   * @throws GcxException.InvalidValue the arguments are of the other byte order
   * @see Raw#gcx_graph_set_kernel
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
      throw new GcxException.InvalidValue("negative number of bytes: " + bytes);
    }
    return bytes;
  }

  /** Copies the buffer without moving its position. */
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
   * Adopts all parameters of another captured graph with the same nodes and order, in all
   * executables or in none. Parts stay.
   *
   * @param captured a CUgraph, which the caller keeps
   * @throws GcxException.GraphUpdate the nodes or their order differ; the message says where
   */
  public void update(long captured) {
    Functions.gcx_graph_update(this, captured);
  }
}

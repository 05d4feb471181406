package gcx;

import java.util.List;

/** Options of a graph. */
public enum GraphOption {
  /**
   * Kernels run with their captured priorities, as in PyTorch's graphs, instead of the priority of
   * the stream in which the graph is launched.
   */
  NODE_PRIORITIES;

  static int flags(GraphOption... options) {
    return List.of(options).contains(NODE_PRIORITIES) ? Raw.GCX_GRAPH_NODE_PRIORITIES : 0;
  }
}

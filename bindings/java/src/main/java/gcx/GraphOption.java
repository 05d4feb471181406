package gcx;

import java.util.List;

/** How a graph's kernels run. */
public enum GraphOption {
  /**
   * With the priorities that they were captured with, as in PyTorch's graphs; else with that of the
   * stream in which they are launched.
   */
  NODE_PRIORITIES;

  static int flags(GraphOption... options) {
    return List.of(options).contains(NODE_PRIORITIES) ? Raw.GCX_GRAPH_NODE_PRIORITIES : 0;
  }
}

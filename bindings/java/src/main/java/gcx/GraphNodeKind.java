package gcx;

/** Kinds of a graph's nodes. */
public enum GraphNodeKind {
  /** A kernel. */
  KERNEL(FunctionsConstants.GCX_GRAPH_NODE_KERNEL),
  /** A copy. */
  MEMCPY(FunctionsConstants.GCX_GRAPH_NODE_MEMCPY),
  /** Memory that is set. */
  MEMSET(FunctionsConstants.GCX_GRAPH_NODE_MEMSET),
  /** A function of the host. */
  HOST(FunctionsConstants.GCX_GRAPH_NODE_HOST),
  /** A child graph. */
  GRAPH(FunctionsConstants.GCX_GRAPH_NODE_GRAPH),
  /** Nothing but order. */
  EMPTY(FunctionsConstants.GCX_GRAPH_NODE_EMPTY),
  /** A wait for an event. */
  WAIT_EVENT(FunctionsConstants.GCX_GRAPH_NODE_WAIT_EVENT),
  /** An event that is recorded. */
  EVENT_RECORD(FunctionsConstants.GCX_GRAPH_NODE_EVENT_RECORD),
  /** An external semaphore that is signalled. */
  SEMAPHORE_SIGNAL(FunctionsConstants.GCX_GRAPH_NODE_SEMAPHORE_SIGNAL),
  /** A wait for an external semaphore. */
  SEMAPHORE_WAIT(FunctionsConstants.GCX_GRAPH_NODE_SEMAPHORE_WAIT);

  /** The number in gcx.h. */
  final int number;

  GraphNodeKind(int number) {
    this.number = number;
  }

  static GraphNodeKind of(int number) {
    for (GraphNodeKind value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a GraphNodeKind that this package doesn't know: " + number);
  }
}

package gcx;

/** What a resource is of. */
public enum ResourceType {
  /** Streaming multiprocessors. */
  SM(FunctionsConstants.GCX_RESOURCE_SM),
  /** From CUDA 13.1 on: how a context is to use the hardware's queues. */
  WORKQUEUE_CONFIG(FunctionsConstants.GCX_RESOURCE_WORKQUEUE_CONFIG),
  /** From CUDA 13.1 on: the queues of a context, to be shared with another. */
  WORKQUEUE(FunctionsConstants.GCX_RESOURCE_WORKQUEUE);

  /** The number in gcx.h. */
  final int number;

  ResourceType(int number) {
    this.number = number;
  }

  static ResourceType of(int number) {
    for (ResourceType value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a ResourceType that this package doesn't know: " + number);
  }
}

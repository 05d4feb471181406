package gcx;

/** Where the number of connections comes from. */
public enum QueueSource {
  /** CUDA's own number: the variable isn't set. */
  DEFAULT(FunctionsConstants.GCX_QUEUE_SOURCE_DEFAULT),
  /** CUDA_DEVICE_MAX_CONNECTIONS. */
  ENVIRONMENT(FunctionsConstants.GCX_QUEUE_SOURCE_ENVIRONMENT);

  /** The number in gcx.h. */
  final int number;

  QueueSource(int number) {
    this.number = number;
  }

  static QueueSource of(int number) {
    for (QueueSource value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a QueueSource that this package doesn't know: " + number);
  }
}

package gcx;

/** With whom a context shares the hardware's queues, from CUDA 13.1 on. */
public enum WorkqueueScope {
  /** With all contexts of the device. */
  DEVICE_CTX(FunctionsConstants.GCX_WORKQUEUE_SCOPE_DEVICE_CTX),
  /** Where possible, with none of the others that are balanced. */
  GREEN_CTX_BALANCED(FunctionsConstants.GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED);

  /** The number in gcx.h. */
  final int number;

  WorkqueueScope(int number) {
    this.number = number;
  }

  static WorkqueueScope of(int number) {
    for (WorkqueueScope value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a WorkqueueScope that this package doesn't know: " + number);
  }
}

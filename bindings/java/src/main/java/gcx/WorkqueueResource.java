package gcx;

/** How a context uses the hardware's queues, from CUDA 13.1 on; passed to it with its SMs. */
public final class WorkqueueResource extends Resource {
  WorkqueueResource(byte[] bytes) {
    super(bytes);
  }

  /**
   * {@return this configuration with another scope and limit}
   *
   * @param scope who shares queues
   * @param concurrencyLimit the expected concurrent workloads; 0 keeps the present limit
   * @throws GcxException.InvalidResourceType this is a context's queues, not a configuration
   * @throws GcxException.InvalidValue the limit is negative
   */
  public WorkqueueResource configured(WorkqueueScope scope, int concurrencyLimit) {
    if (concurrencyLimit < 0) {
      throw new GcxException.InvalidValue("negative limit of workloads: " + concurrencyLimit);
    }
    return new WorkqueueResource(
        Functions.gcx_workqueue_configure(this, scope.number, concurrencyLimit));
  }

  /** {@return who shares queues} */
  public WorkqueueScope scope() {
    return info().workqueueScope();
  }

  /** {@return how many concurrent workloads are expected} */
  public int concurrencyLimit() {
    return info().workqueueConcurrencyLimit();
  }

  @Override
  public String toString() {
    ResourceInfo info = info();
    return info.type() == ResourceType.WORKQUEUE
        ? "workqueue of device " + info.device()
        : "workqueue configuration of device "
            + info.device()
            + ": "
            + info.workqueueScope()
            + ", limit "
            + info.workqueueConcurrencyLimit();
  }
}

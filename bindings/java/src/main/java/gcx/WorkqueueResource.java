package gcx;

/**
 * How contexts use the hardware's queues, from CUDA 13.1 on. It goes to a context beside its SMs.
 */
public final class WorkqueueResource extends Resource {
  WorkqueueResource(byte[] bytes) {
    super(bytes);
  }

  /**
   * The same configuration, but for this.
   *
   * @param scope with whom queues are shared
   * @param concurrencyLimit the concurrent workloads expected; 0 keeps what it has
   * @return the other configuration
   * @throws GcxException.InvalidResourceType this is no configuration but a context's queues
   * @throws GcxException.InvalidValue the limit is negative
   */
  public WorkqueueResource configured(WorkqueueScope scope, int concurrencyLimit) {
    if (concurrencyLimit < 0) {
      throw new GcxException.InvalidValue(concurrencyLimit + " is no limit of workloads");
    }
    return new WorkqueueResource(
        Functions.gcx_workqueue_configure(this, scope.number, concurrencyLimit));
  }

  /**
   * With whom queues are shared.
   *
   * @return the scope
   */
  public WorkqueueScope scope() {
    return info().workqueueScope();
  }

  /**
   * How many concurrent workloads are expected.
   *
   * @return the limit
   */
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

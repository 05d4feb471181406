package gcx;

import java.util.List;

/**
 * Exclusive use of some SMs within this process. {@link Device#acquire(long)} returns one;
 * docs/reference/java.md explains leases.
 *
 * <p>A stream of a lease follows it: see {@link Stream#nativeHandle()}. Closing a lease frees its
 * SMs and ends its streams, which then throw {@link GcxException.ContextDestroyed}.
 *
 * <p>Tested on the simulated driver and on an H200.
 */
public final class Lease extends LeaseMethods {
  private final Object lock = new Object();

  /** The stream of {@link #stream()}, or null until that is called. */
  private Stream stream;

  Lease(long handle) {
    super(handle, Natives::gcx_lease_release);
  }

  /**
   * {@return the leases of all devices in the order in which they were acquired, then the waiting
   * requests in the order in which they are served}
   */
  public static List<LiveLease> live() {
    return List.of(Functions.gcx_lease_list(-1));
  }

  /**
   * {@return the leases of a device, in the order of {@link #live()}}
   *
   * @param device the device
   */
  public static List<LiveLease> live(Device device) {
    return List.of(Functions.gcx_lease_list(device.existing()));
  }

  /**
   * Resizes leases, all of them or none: one can grow by what another gives. Later work of their
   * streams runs on the new SMs. Takes microseconds after {@link #prepare}.
   *
   * @param sizes the new size of each lease, all of one device and family
   * @param options how later work of their streams starts
   * @see Raw#gcx_lease_resize
   */
  public static void resize(List<LeaseSize> sizes, ResizeOption... options) {
    Functions.gcx_lease_resize(List.copyOf(sizes), ResizeOption.flags(options));
  }

  /**
   * Resizes this lease alone, like {@link #resize(List, ResizeOption...)}.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @param options how later work of its streams starts
   */
  public void resize(long smCount, ResizeOption... options) {
    resize(List.of(new LeaseSize(this, smCount)), options);
  }

  /**
   * Creates the contexts that {@link #resize(List, ResizeOption...)} with these sizes would need,
   * and changes nothing. They are cached within {@link Cache#setLimit}.
   *
   * @param sizes the size of each lease
   */
  public static void prepare(List<LeaseSize> sizes) {
    Functions.gcx_lease_prepare(List.copyOf(sizes));
  }

  /**
   * Returns the lease's first stream, of priority 0, which is closed with the lease.
   *
   * @return the same stream each time, unless the caller has closed it
   */
  public Stream stream() {
    synchronized (lock) {
      handle();
      if (stream == null || stream.isClosed()) {
        stream = createStream();
      }
      return stream;
    }
  }

  /** {@return a further stream of this lease, of priority 0, to be closed by the caller} */
  public Stream createStream() {
    return createStream(0);
  }

  /**
   * {@return a further stream of this lease, to be closed by the caller}
   *
   * @param priority lower is more urgent; clamped to {@link Device#streamPriorityRange}
   */
  public Stream createStream(int priority) {
    return new Stream(
        Functions.gcx_lease_stream_create(this, Raw.GCX_STREAM_NON_BLOCKING, priority), this);
  }

  @Override
  public void close() {
    super.close();
    closeStream();
  }

  private void closeStream() {
    synchronized (lock) {
      if (stream != null) {
        stream.close();
      }
    }
  }
}

package gcx;

import java.util.List;

/**
 * SMs that are somebody's: no two leases of a process have an SM in common unless both are shared,
 * whoever made them, and they grow, shrink and change hands while their streams work. {@link
 * Device#acquire(long)} makes them.
 *
 * <p>A stream of a lease stands for the lease: {@link Stream#nativeHandle()}, and every method that
 * takes the stream, uses a CUstream of the SMs that the lease has at that call, behind all work of
 * the CUstream before. A CUstream that was taken before a change still is a live stream of the SMs
 * which the lease had then, until its work is done: so take it anew for each step, and submit
 * nothing to it while another thread changes the lease. A stream that captures a graph moves once
 * the capture has ended; the graph stays on the SMs of its capture.
 *
 * <p>On SMs that change hands the new holder's work waits on the device for the former holder's. No
 * thread waits.
 *
 * <p>Every method may be called from any thread, at any time. Tested on the simulated driver and on
 * an H200.
 */
public final class Lease extends Owned {
  private final Object own = new Object();

  /** Of {@link #stream()}; null until somebody asks for it. */
  private Stream stream;

  Lease(long handle) {
    super(handle, Natives::gcx_lease_release);
  }

  /**
   * The leases of all devices: those that hold SMs in the order in which they were acquired, then
   * the requests that wait, the first first.
   *
   * @return what lives and what waits
   */
  public static List<LiveLease> live() {
    return List.of(Functions.gcx_lease_list(-1));
  }

  /**
   * The leases of a device, in the order of {@link #live()}.
   *
   * @param device the device
   * @return what lives and what waits
   */
  public static List<LiveLease> live(Device device) {
    if (device.ordinal() < 0) {
      throw new GcxException.InvalidDevice("there is no device " + device.ordinal());
    }
    return List.of(Functions.gcx_lease_list(device.ordinal()));
  }

  /**
   * Gives leases other sizes, all in one operation or none: one can grow by what another gives.
   * Work in flight finishes where it runs; later work of their streams runs on the new SMs, behind
   * what was before in its stream. Takes microseconds where contexts of the new sets are kept, see
   * {@link #prepare}.
   *
   * @param sizes what each lease is to have, of one device and family
   * @param options how later work of their streams starts
   * @throws GcxException.AlreadyAcquired the SMs that the leases have and those that are free don't
   *     suffice, or others wait for them; the message says who
   * @throws GcxException.ResourceConfiguration the leases are of two devices or families; the
   *     device has not so many SMs; less than a shared lease's exclusive ones
   * @throws GcxException.InvalidValue there is no size, or a lease is there twice
   */
  public static void resize(List<LeaseSize> sizes, ResizeOption... options) {
    Functions.gcx_lease_resize(List.copyOf(sizes), ResizeOption.flags(options));
  }

  /**
   * Gives this lease another size: {@link #resize(List, ResizeOption...)} of one.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @param options how later work of its streams starts
   */
  public void resize(long smCount, ResizeOption... options) {
    resize(List.of(LeaseSize.of(this, smCount)), options);
  }

  /**
   * Makes the contexts that {@link #resize(List, ResizeOption...)} with these sizes would need, and
   * changes nothing: for a thread that makes ahead of time what is to be changed in microseconds
   * later, one call for each layout. They are kept within {@link Cache#setLimit}.
   *
   * @param sizes what each lease would have
   */
  public static void prepare(List<LeaseSize> sizes) {
    Functions.gcx_lease_prepare(List.copyOf(sizes));
  }

  /**
   * Closes this lease and gives all its SMs to another, past those who wait.
   *
   * @param to a lease of the same device and family
   * @param options how later work of the other's streams starts
   * @throws GcxException.InvalidValue it is this lease itself
   */
  public void handOver(Lease to, ResizeOption... options) {
    int flags = ResizeOption.flags(options);
    giveUp(() -> Functions.gcx_lease_hand_over(this, to, flags));
    closeStream();
  }

  /**
   * The lease's own stream, of priority 0, which is closed with it.
   *
   * @return the stream; the same one each time, unless the caller has closed it
   */
  public Stream stream() {
    synchronized (own) {
      handle();
      if (stream == null || stream.isClosed()) {
        stream = createStream();
      }
      return stream;
    }
  }

  /**
   * A further stream of this lease, of priority 0.
   *
   * @return the stream, to be closed by the caller
   */
  public Stream createStream() {
    return createStream(0);
  }

  /**
   * A further stream of this lease.
   *
   * @param priority lower is more urgent; clamped to {@link Device#streamPriorityRange}
   * @return the stream, to be closed by the caller
   */
  public Stream createStream(int priority) {
    return new Stream(
        Functions.gcx_lease_stream_create(this, Raw.GCX_STREAM_NON_BLOCKING, priority), this);
  }

  /**
   * What is known of it.
   *
   * @return counts, id and name
   */
  public LeaseInfo info() {
    return Functions.gcx_lease_get_info(this);
  }

  /**
   * How many SMs it has now.
   *
   * @return the SMs
   */
  public int smCount() {
    return info().smCount();
  }

  /**
   * The SMs that it has now.
   *
   * @return the SMs, as one resource
   */
  public SmResource sms() {
    return new SmResource(Functions.gcx_lease_get_resource(this));
  }

  /**
   * Waits in the calling thread until the work of its streams has finished, on whatever SMs it was
   * submitted. A stream that captures a graph is not waited for.
   */
  public void synchronize() {
    Functions.gcx_lease_synchronize(this);
  }

  /**
   * Whether that work has finished. Never waits.
   *
   * @return true if all has
   */
  public boolean isDone() {
    return Functions.gcx_lease_query(this);
  }

  /**
   * Whether it was closed, or handed over.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  /**
   * Gives it up. Its SMs are free at once, its work finishes, and the work of who has them next
   * waits for that. Its streams end with it: they answer {@link GcxException.ContextDestroyed}.
   * Never waits for work. Closing again does nothing.
   */
  @Override
  public void close() {
    super.close();
    closeStream();
  }

  private void closeStream() {
    synchronized (own) {
      if (stream != null) {
        stream.close();
      }
    }
  }

  @Override
  public String toString() {
    return isOpen() ? "lease" : "lease, closed";
  }
}

package gcx;

import java.util.List;
import java.util.Optional;

/**
 * A stream, whose kernels run on its context's or lease's SMs alone. It keeps its context, and is
 * nobody else's until it is closed. One of a {@link Lease} follows it, and ends with it.
 *
 * <p>Every method may be called from any thread, at any time. What takes part in the capture of a
 * graph can't be asked or waited for: {@link GcxException.Capture}.
 */
public final class Stream extends Owned {
  /** Kept from the collector, which would end the stream with it; null: it has none. */
  private final Lease lease;

  Stream(long handle) {
    this(handle, null);
  }

  Stream(long handle, Lease lease) {
    super(handle, Natives::gcx_stream_destroy);
    this.lease = lease;
  }

  /**
   * Stands for a stream that someone else made, which must live longer: for asking for its SMs, and
   * for waiting. Closing leaves it alone.
   *
   * @param nativeHandle a CUstream, which is a cudaStream_t; CUDA's default streams are refused
   * @return the stream, to be closed by the caller
   */
  public static Stream fromNative(long nativeHandle) {
    return new Stream(Functions.gcx_stream_from_native(nativeHandle));
  }

  /**
   * CUDA's own handle, for any CUDA code: JCuda takes it as {@code new cudaStream_t(long)}'s
   * argument or the like. It must not be destroyed, and nothing may be submitted to it after this
   * was closed, when it may be someone else's.
   *
   * <p>Of a stream of a {@link Lease} it is a CUstream of the SMs that the lease has at this call.
   * A CUstream that was taken before a change still is a live stream of the SMs which the lease had
   * then, until its work is done: so take it anew for each step, and submit nothing to it while
   * another thread changes the lease.
   *
   * @return the CUstream, which is a cudaStream_t
   * @throws GcxException.ContextDestroyed its lease was closed, or the device was reset
   */
  public long nativeHandle() {
    return nativeOf(this, Functions::gcx_stream_native, Functions::gcx_stream_get_info);
  }

  /**
   * The lease that it follows.
   *
   * @return the lease, closed or not; empty of a stream of a context
   */
  public Optional<Lease> lease() {
    return Optional.ofNullable(lease);
  }

  /**
   * What is known of it.
   *
   * @return counts and priority
   */
  public StreamInfo info() {
    return Functions.gcx_stream_get_info(this);
  }

  /**
   * How many SMs its kernels can run on.
   *
   * @return the SMs
   */
  public int smCount() {
    return info().smCount();
  }

  /**
   * The SMs of its context.
   *
   * @return the SMs
   * @throws GcxException.NotSupported it is a part of the device that gcx didn't make, on a driver
   *     before CUDA 13.1
   */
  public SmResource sms() {
    return new SmResource(Functions.gcx_stream_get_resource(this, ResourceType.SM.number));
  }

  /**
   * The workqueue configuration of its context, from CUDA 13.1 on.
   *
   * @return the configuration
   */
  public WorkqueueResource workqueueConfiguration() {
    return new WorkqueueResource(
        Functions.gcx_stream_get_resource(this, ResourceType.WORKQUEUE_CONFIG.number));
  }

  /**
   * The workqueue of its context, to be shared with another, from CUDA 13.1 on.
   *
   * @return the workqueue
   */
  public WorkqueueResource workqueue() {
    return new WorkqueueResource(
        Functions.gcx_stream_get_resource(this, ResourceType.WORKQUEUE.number));
  }

  /**
   * The most blocks that a thread block cluster of its kernels can have.
   *
   * @return blocks; 1 on a device without clusters
   */
  public int maxClusterSize() {
    return Functions.gcx_stream_get_max_cluster_size(this);
  }

  /**
   * How much of a kernel without clusters fits its SMs at once, when nothing else is there: for
   * kernels that size their grid by the SMs. One with a barrier of its own over a grid that does
   * not fit hangs. A stream of a lease answers for the SMs that the lease has at this call.
   *
   * @param function a CUfunction, or a CUkernel
   * @param blockThreads threads of a block, 1 to 1024
   * @param sharedBytes dynamic shared memory of a block
   * @return blocks
   * @throws GcxException.InvalidValue the threads are not 1 to 1024, or the function is 0
   * @throws GcxException.InvalidHandle it is no function, as far as the driver notices
   */
  public KernelFit kernelFit(long function, int blockThreads, int sharedBytes) {
    return kernelFit(function, blockThreads, sharedBytes, 0);
  }

  /**
   * The same of a kernel with clusters.
   *
   * @param function a CUfunction, or a CUkernel
   * @param blockThreads threads of a block
   * @param sharedBytes dynamic shared memory of a block
   * @param clusterBlocks blocks of a cluster; 0: it is launched without
   * @return blocks and clusters
   */
  public KernelFit kernelFit(long function, int blockThreads, int sharedBytes, int clusterBlocks) {
    return Functions.gcx_stream_get_kernel_fit(
        this, function, blockThreads, Graph.checkedBytes(sharedBytes), clusterBlocks);
  }

  /** The caller keeps the streams reachable. */
  static long[] joined(List<Stream> streams) {
    return streams.stream().mapToLong(Stream::handle).toArray();
  }

  /** Waits in the calling thread until its work has finished. Errors of that work appear here. */
  public void synchronize() {
    Functions.gcx_stream_synchronize(this);
  }

  /**
   * Whether all its work has finished. Never waits.
   *
   * @return true if all has
   */
  public boolean isDone() {
    return Functions.gcx_stream_query(this);
  }

  /**
   * Captures in the event the work submitted so far.
   *
   * @param event an event of the same device
   * @throws GcxException.InvalidHandle the event is of another device
   */
  public void record(Event event) {
    Functions.gcx_stream_record(this, event);
  }

  /**
   * Holds all later work of this stream until the event's work has finished, on the device: the
   * calling thread goes on.
   *
   * @param event any event, of another device too
   */
  public void waitFor(Event event) {
    Functions.gcx_stream_wait(this, event);
  }

  /**
   * Holds all later work of this stream until the other's work so far has finished.
   *
   * @param other any stream
   */
  public void waitFor(Stream other) {
    try (Event event = Event.create(new Device(other.info().device()))) {
      other.record(event);
      waitFor(event);
    }
  }

  /**
   * The hardware's numbers of the SMs that its kernels run on, ascending, as a kernel finds them.
   * Waits for the stream.
   *
   * @return the numbers
   */
  public int[] probeSms() {
    return Functions.gcx_stream_probe_sms(this);
  }

  /**
   * Shows which SMs streams of one device really run on, and whether that is what was promised, by
   * {@link #probeSms()} of each. A problem is no exception. On the simulated driver this proves
   * nothing about a GPU.
   *
   * @param streams at least one
   * @return what was found
   * @throws GcxException.InvalidValue there is none, or they are of several devices
   */
  public static Verified verify(List<Stream> streams) {
    Object[] found = Functions.gcx_verify(List.copyOf(streams));
    return new Verified((Verification) found[0], List.of((VerifiedStream[]) found[1]));
  }

  /**
   * What {@link #verify} found.
   *
   * @param found whether all is well, and the problems
   * @param streams what was seen of each stream, in the order given
   */
  public record Verified(Verification found, List<VerifiedStream> streams) {}

  /**
   * Whether it was closed.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  /** Gives it up. Work in it finishes. Never waits. Closing again does nothing. */
  @Override
  public void close() {
    super.close();
  }

  @Override
  public String toString() {
    return isOpen() ? "stream" : "stream, closed";
  }
}

package gcx;

import java.util.List;
import java.util.Optional;

/**
 * A stream whose kernels run only on the SMs of its context or lease. A stream of a {@link Lease}
 * follows it and ends with it; any other stream keeps its context.
 *
 * <p>A stream that captures a graph can't be queried or waited for: {@link GcxException.Capture}.
 */
public final class Stream extends StreamMethods {
  /** Keeps the lease from the collector, which would end the stream; null without a lease. */
  private final Lease lease;

  Stream(long handle) {
    this(handle, null);
  }

  Stream(long handle, Lease lease) {
    super(handle, Natives::gcx_stream_destroy);
    this.lease = lease;
  }

  /**
   * Wraps a stream of other code, which must outlive it, to read its SMs and to wait for its work.
   * Closing does not destroy that stream.
   *
   * @param nativeHandle a CUstream, which is a cudaStream_t; not one of CUDA's default streams
   * @return the stream, to be closed by the caller
   */
  public static Stream fromNative(long nativeHandle) {
    return new Stream(Functions.gcx_stream_from_native(nativeHandle));
  }

  /** {@return the lease that it follows, closed or not; empty for a stream of a context} */
  public Optional<Lease> lease() {
    return Optional.ofNullable(lease);
  }

  /**
   * Returns how many blocks and clusters of a kernel fit its SMs at once when they are idle.
   *
   * @param function a CUfunction, or a CUkernel
   * @param blockThreads threads of a block, 1 to 1024
   * @param sharedBytes dynamic shared memory of a block
   * @param clusterBlocks blocks of a cluster, or 0 for a launch without clusters
   * @return blocks and clusters
   * @see Raw#gcx_stream_get_kernel_fit
   */
  public KernelFit kernelFit(long function, int blockThreads, int sharedBytes, int clusterBlocks) {
    return Functions.gcx_stream_get_kernel_fit(
        this, function, blockThreads, Graph.checkedBytes(sharedBytes), clusterBlocks);
  }

  /** The caller keeps the streams reachable. */
  static long[] joined(List<Stream> streams) {
    return streams.stream().mapToLong(Stream::handle).toArray();
  }

  /**
   * Delays later work of this stream, on the device, until the other's work so far has finished.
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
   * Probes streams of one device and compares their SMs with their partitions. Problems are in the
   * result; they are no exception. On the simulated driver this proves nothing about a GPU.
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
   * The result of {@link #verify}.
   *
   * @param found whether all is well, and the problems
   * @param streams what was seen of each stream, in their order
   */
  public record Verified(Verification found, List<VerifiedStream> streams) {}
}

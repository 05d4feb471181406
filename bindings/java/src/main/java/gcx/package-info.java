/**
 * SM partitioning for NVIDIA GPUs: streams whose kernels run on a part of the SMs.
 *
 * <p>A {@link gcx.Device}'s SMs are split into {@link gcx.SmResource}s, a {@link gcx.Context} is
 * created over a resource, and a {@link gcx.Stream} in a context. Any CUDA code takes the stream by
 * {@link gcx.Stream#nativeHandle()}, which is a cudaStream_t. A {@link gcx.Lease} gives exclusive
 * use of SMs within the process, a {@link gcx.Reservation} across the processes of a host.
 *
 * <p><b>Threads.</b> Every method may be called from any thread at any time, also on the same
 * object. {@link gcx.Context#push()} makes a context current in the calling thread only.
 *
 * <p><b>Lifetimes.</b> Contexts, leases, reservations, streams, events and graphs are closed by
 * {@code close()}, in any order: a stream keeps its context, and closing never stops submitted
 * work. Closing again does nothing; any other use of a closed object throws {@link
 * gcx.GcxException.InvalidHandle}. A {@link java.lang.ref.Cleaner} closes unreachable objects, some
 * time later. Resources and records are values; resources are valid in the process that created
 * them.
 *
 * <p><b>Errors.</b> What gcx or the driver refuses is a {@link gcx.GcxException}, whose classes are
 * the kinds of errors. The function of {@link gcx.Raw} that a method names has the list of its
 * errors. A call that fails has created and changed nothing.
 *
 * <p>The first call that needs a driver opens it; {@link gcx.Gcx#openDriver} chooses another one,
 * such as the simulated one.
 */
package gcx;

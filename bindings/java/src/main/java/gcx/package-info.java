/**
 * SM partitioning for NVIDIA GPUs: streams whose kernels run on a part of the SMs.
 *
 * <p>A {@link gcx.Device}'s SMs are split into {@link gcx.SmResource}s, a {@link gcx.Context} is
 * made of a resource, and a {@link gcx.Stream} of a context. Any CUDA code takes the stream by
 * {@link gcx.Stream#nativeHandle()}, which is a cudaStream_t.
 *
 * <p>A {@link gcx.Lease} says whose SMs are: those of two never overlap unless both are shared, and
 * its streams follow it when it grows, shrinks or changes hands. A {@link gcx.Reservation} is
 * agreed on by the processes of a host: those of two never overlap.
 *
 * <p><b>Threads.</b> Every method may be called from any thread at any time, also on the same
 * object. What {@link gcx.Context#push()} makes current is so in the calling thread.
 *
 * <p><b>Lifetimes.</b> Contexts, leases, reservations, streams and events are closed by {@code
 * close()}, in any order: a stream keeps its context, and closing never stops work that was
 * submitted. Closing again does nothing; using one afterwards is a {@link
 * gcx.GcxException.InvalidHandle}. One that nobody refers to any more is closed by a {@link
 * java.lang.ref.Cleaner}, some time later. Resources and records are values with nothing to close;
 * resources are valid in the process that made them.
 *
 * <p><b>Errors.</b> What gcx or the driver refuses is a {@link gcx.GcxException}, whose classes are
 * the kinds of errors. After one nothing was made and nothing has changed.
 *
 * <p>The driver is opened by the first call that needs it; {@link gcx.Gcx#openDriver} chooses
 * another one, such as the simulated one.
 */
package gcx;

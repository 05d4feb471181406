package gcx;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * A green context: SMs, and a workqueue from CUDA 13.1 on. gcx makes one for each set of resources,
 * once, and keeps it; so two contexts over equal resources share one, and synchronizing or
 * recording one covers the work of both, unless it is made private.
 *
 * <p>Every method may be called from any thread, at any time.
 */
public final class Context extends Owned {
  /** What the thread has pushed, the last first. */
  private static final ThreadLocal<Deque<Pushed>> PUSHED = ThreadLocal.withInitial(ArrayDeque::new);

  private Context(long handle) {
    super(handle, Natives::gcx_context_destroy);
  }

  /**
   * A context over one or several resources: SMs of one device and family, disjoint, and from CUDA
   * 13.1 on at most one workqueue.
   *
   * @param resources the resources
   * @return the context, to be closed by the caller
   * @throws GcxException.ResourceConfiguration they overlap, are of two devices or families, or
   *     hold no SMs
   */
  public static Context create(Resource... resources) {
    return new Context(Functions.gcx_context_create(List.of(resources), 0));
  }

  /**
   * A context that shares its green context with nobody. Given up, it is kept like others.
   *
   * @param resources as of {@link #create}
   * @return the context, to be closed by the caller
   */
  public static Context createPrivate(Resource... resources) {
    return new Context(Functions.gcx_context_create(List.of(resources), Raw.GCX_CONTEXT_PRIVATE));
  }

  /**
   * A further context over the green context that gcx made behind a native one.
   *
   * @param nativeHandle a CUcontext
   * @return the context, to be closed by the caller
   * @throws GcxException.NotFound it isn't one of gcx's
   */
  public static Context fromNative(long nativeHandle) {
    return new Context(Functions.gcx_context_from_native(nativeHandle));
  }

  /**
   * The green contexts of all devices that are in use.
   *
   * @return those with a context or stream, in the order of making
   */
  public static List<LiveContext> live() {
    return List.of(Functions.gcx_context_list(-1));
  }

  /**
   * The green contexts of a device that are in use.
   *
   * @param device the device
   * @return those with a context or stream, in the order of making
   */
  public static List<LiveContext> live(Device device) {
    if (device.ordinal() < 0) {
      throw new GcxException.InvalidDevice("there is no device " + device.ordinal());
    }
    return List.of(Functions.gcx_context_list(device.ordinal()));
  }

  /**
   * A stream of this context, of priority 0.
   *
   * @return the stream, to be closed by the caller
   */
  public Stream createStream() {
    return createStream(0);
  }

  /**
   * A stream of this context.
   *
   * @param priority lower is more urgent; clamped to {@link Device#streamPriorityRange}
   * @return the stream, to be closed by the caller
   */
  public Stream createStream(int priority) {
    return new Stream(Functions.gcx_stream_create(this, Raw.GCX_STREAM_NON_BLOCKING, priority));
  }

  /**
   * What is known of it.
   *
   * @return counts and id
   */
  public ContextInfo info() {
    return Functions.gcx_context_get_info(this);
  }

  /**
   * How many SMs it has.
   *
   * @return the SMs
   */
  public int smCount() {
    return info().smCount();
  }

  /**
   * The SMs that it was made of.
   *
   * @return the SMs, as one resource
   */
  public SmResource sms() {
    return new SmResource(Functions.gcx_context_get_resource(this, ResourceType.SM.number));
  }

  /**
   * Its workqueue configuration, from CUDA 13.1 on.
   *
   * @return the configuration
   */
  public WorkqueueResource workqueueConfiguration() {
    return new WorkqueueResource(
        Functions.gcx_context_get_resource(this, ResourceType.WORKQUEUE_CONFIG.number));
  }

  /**
   * Its workqueue, to be shared with another context, from CUDA 13.1 on.
   *
   * @return the workqueue
   */
  public WorkqueueResource workqueue() {
    return new WorkqueueResource(
        Functions.gcx_context_get_resource(this, ResourceType.WORKQUEUE.number));
  }

  /**
   * CUDA's own handle, for any CUDA code, which must not destroy it.
   *
   * @return the CUcontext, valid as long as this or a stream of it is open
   */
  public long nativeHandle() {
    return nativeOf(this, Functions::gcx_context_native, Functions::gcx_context_get_info);
  }

  /**
   * CUDA's own handle of the green context, for any CUDA code, which must not destroy it.
   *
   * @return the CUgreenCtx, valid as long as this or a stream of it is open
   */
  public long nativeGreenHandle() {
    return nativeOf(this, Functions::gcx_context_native_green, Functions::gcx_context_get_info);
  }

  /**
   * Makes it current in the calling thread, on top of CUDA's stack of contexts, until what this
   * gives is closed by the same thread. A virtual thread can't: it goes from thread to thread.
   *
   * @return what takes it off again
   * @throws GcxException.NotPermitted the thread is a virtual one
   */
  public Pushed push() {
    if (VirtualThreads.isCurrent()) {
      throw new GcxException.NotPermitted(
          "a virtual thread can't make a context current: it goes from thread to thread");
    }
    Functions.gcx_context_push(this);
    Pushed pushed = new Pushed(this);
    PUSHED.get().push(pushed);
    return pushed;
  }

  /**
   * The context that the calling thread pushed last, if it is current.
   *
   * @return the context, or empty
   */
  public static Optional<Context> current() {
    long handle = Functions.gcx_context_get_current();
    return PUSHED.get().stream()
        .map(pushed -> pushed.context)
        .filter(context -> context.isOpen() && context.handle() == handle)
        .findFirst();
  }

  /** A context that a thread has made current. */
  public static final class Pushed implements AutoCloseable {
    private final Context context;
    private boolean popped;

    private Pushed(Context context) {
      this.context = context;
    }

    /**
     * Takes it off. Closing again does nothing.
     *
     * @throws GcxException.InvalidContext another thread pushed it, or another context is on top
     */
    @Override
    public void close() {
      if (popped) {
        return;
      }
      if (PUSHED.get().peek() != this) {
        throw new GcxException.InvalidContext(
            "the context isn't the one that this thread pushed last");
      }
      Functions.gcx_context_pop();
      PUSHED.get().pop();
      popped = true;
    }
  }

  /** Waits in the calling thread until all work of its streams has finished. */
  public void synchronize() {
    Functions.gcx_context_synchronize(this);
  }

  /**
   * Captures in the event the work submitted so far to all its streams.
   *
   * @param event an event of the same device
   * @throws GcxException.InvalidHandle the event is of another device
   */
  public void record(Event event) {
    Functions.gcx_context_record(this, event);
  }

  /**
   * Holds all later work of all its streams until the event's work has finished.
   *
   * @param event any event, of another device too
   */
  public void waitFor(Event event) {
    Functions.gcx_context_wait(this, event);
  }

  /**
   * Whether it was closed.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  /**
   * Gives it up. Its streams stay usable and keep it, and work finishes. Closing again does
   * nothing.
   *
   * @throws GcxException.ContextInUse it is current in this thread; it stays open
   */
  @Override
  public void close() {
    super.close();
  }

  @Override
  public String toString() {
    return isOpen() ? "context" : "context, closed";
  }
}

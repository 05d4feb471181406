package gcx;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * A green context: SMs, and a workqueue from CUDA 13.1 on. gcx creates one for each set of
 * resources and caches it. Two contexts over equal resources therefore share one, and synchronizing
 * or recording one covers the work of both, unless it is private.
 *
 * <p>Streams keep their context, so it can be closed before them. A context that is current in the
 * calling thread can't be closed: {@link GcxException.ContextInUse}; it stays open.
 */
public final class Context extends ContextMethods {
  /** What the thread has pushed, the last first. */
  private static final ThreadLocal<Deque<Pushed>> PUSHED = ThreadLocal.withInitial(ArrayDeque::new);

  private Context(long handle) {
    super(handle, Natives::gcx_context_destroy);
  }

  /**
   * Creates a context over resources: disjoint SMs of one device and family, and from CUDA 13.1 on
   * at most one workqueue.
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
   * Creates a context that shares its green context with no other one.
   *
   * @param resources as of {@link #create}
   * @return the context, to be closed by the caller
   */
  public static Context createPrivate(Resource... resources) {
    return new Context(Functions.gcx_context_create(List.of(resources), Raw.GCX_CONTEXT_PRIVATE));
  }

  /** {@return the green contexts of all devices that are in use, in the order of creation} */
  public static List<LiveContext> live() {
    return List.of(Functions.gcx_context_list(-1));
  }

  /**
   * {@return the green contexts of a device that are in use, in the order of creation}
   *
   * @param device the device
   */
  public static List<LiveContext> live(Device device) {
    return List.of(Functions.gcx_context_list(device.existing()));
  }

  /** {@return a stream of this context, of priority 0, to be closed by the caller} */
  public Stream createStream() {
    return createStream(0);
  }

  /**
   * {@return a stream of this context, to be closed by the caller}
   *
   * @param priority lower is more urgent; clamped to {@link Device#streamPriorityRange}
   */
  public Stream createStream(int priority) {
    return new Stream(Functions.gcx_stream_create(this, Raw.GCX_STREAM_NON_BLOCKING, priority));
  }

  /**
   * Makes this context current in the calling thread, on top of CUDA's context stack, until the
   * same thread closes the result. Virtual threads can't, since they change their carrier.
   *
   * @return what removes it from the stack
   * @throws GcxException.NotPermitted the thread is a virtual one
   */
  public Pushed push() {
    if (VirtualThreads.isCurrent()) {
      throw new GcxException.NotPermitted(
          "Context.push: a virtual thread changes its carrier and can't have a current context;"
              + " call it in a platform thread");
    }
    Functions.gcx_context_push(this);
    Pushed pushed = new Pushed(this);
    PUSHED.get().push(pushed);
    return pushed;
  }

  /** {@return the context that the calling thread pushed last, or empty if it is not current} */
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
     * Removes it from the stack. Closing again does nothing.
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
}

package gcx;

import java.lang.ref.Cleaner;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.ToLongFunction;

/** What has a handle of the library, which is given up once: by close, or when it is collected. */
abstract class Owned implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Handle owned;
  private final Cleaner.Cleanable cleanable;

  /** The handle, which outlives its owner: what gives it up must not refer to that. */
  private static final class Handle implements Runnable {
    private final LongConsumer destroy;
    private volatile long value;

    Handle(long value, LongConsumer destroy) {
      this.value = value;
      this.destroy = destroy;
    }

    /** A handle that can't be given up is kept. */
    synchronized void close() {
      if (value != 0) {
        destroy.accept(value);
        value = 0;
      }
    }

    /** What the call gives up is nobody's afterwards; if it throws it is kept. */
    synchronized void giveUp(Runnable call) {
      call.run();
      value = 0;
    }

    /** In the cleaner's thread, where nobody catches. The library's log has what went wrong. */
    @Override
    public void run() {
      try {
        close();
      } catch (GcxException problem) {
        value = 0;
      }
    }
  }

  Owned(long handle, LongConsumer destroy) {
    owned = new Handle(handle, destroy);
    cleanable = CLEANER.register(this, owned);
  }

  /** The handle for a call; the caller keeps this object reachable until it has returned. */
  final long handle() {
    long handle = owned.value;
    if (handle == 0) {
      String name = getClass().getSimpleName();
      throw new GcxException.InvalidHandle("the " + name + " is closed");
    }
    return handle;
  }

  /** By a call that gives the handle up in another manner than close. */
  final void giveUp(Runnable call) {
    owned.giveUp(call);
    cleanable.clean();
  }

  /**
   * CUDA's own handle. Where there is none, which 0 says and CUDA takes for its default stream, the
   * other call throws the reason.
   */
  static <T extends Owned> long nativeOf(T object, ToLongFunction<T> ask, Function<T, ?> other) {
    long handle = ask.applyAsLong(object);
    if (handle == 0) {
      other.apply(object);
      throw new GcxException.InvalidHandle(Functions.gcx_last_error_message());
    }
    return handle;
  }

  final boolean isOpen() {
    return owned.value != 0;
  }

  @Override
  public void close() {
    owned.close();
    cleanable.clean();
  }
}

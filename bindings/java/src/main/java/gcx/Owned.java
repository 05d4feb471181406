package gcx;

import java.lang.ref.Cleaner;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.ToLongFunction;

/** An object with a handle of the library, which is destroyed by close or by the cleaner. */
abstract class Owned implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Handle owned;
  private final Cleaner.Cleanable cleanable;

  /** The handle outlives its owner, to which the cleaner's action must not refer. */
  private static final class Handle implements Runnable {
    private final LongConsumer destroy;
    private volatile long value;

    Handle(long value, LongConsumer destroy) {
      this.value = value;
      this.destroy = destroy;
    }

    /** Keeps the handle if it can't be destroyed. */
    synchronized void close() {
      if (value != 0) {
        destroy.accept(value);
        value = 0;
      }
    }

    /** Runs in the cleaner's thread, where no one can catch; the library logs the problem. */
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

  /** Returns the handle; the caller keeps this object reachable until the call has returned. */
  final long handle() {
    long handle = owned.value;
    if (handle == 0) {
      String name = getClass().getSimpleName();
      throw new GcxException.InvalidHandle("the " + name + " is closed");
    }
    return handle;
  }

  /**
   * Returns CUDA's handle. If there is none, the handle is 0, which CUDA takes for its default
   * stream; the other call then throws the reason.
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

  /** {@return whether this object was closed; every other method then fails} */
  public final boolean isClosed() {
    return !isOpen();
  }

  /** Closes this object. Never waits for work, which continues. Closing again does nothing. */
  @Override
  public void close() {
    owned.close();
    cleanable.clean();
  }

  @Override
  public String toString() {
    return getClass().getSimpleName().toLowerCase(Locale.ROOT) + (isOpen() ? "" : ", closed");
  }
}

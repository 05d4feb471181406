package gcx;

import java.io.IOException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;

/**
 * One blocking call that the interruption of its thread or a {@link Cancel} can cancel: a wait for
 * SMs, or the preparation of contexts. It is a channel because Java closes channels when a thread
 * inside a call is interrupted.
 */
final class Wait extends AbstractInterruptibleChannel {
  /** The longest timeout that the library counts: the next number means none. */
  private static final Duration LONGEST = Duration.ofMillis(0xffff_fffeL);

  private final Token token;

  private Wait(Token token) {
    this.token = token;
  }

  /** The library's cancel object: one for each wait, since a signal is permanent. */
  static final class Token extends Owned {
    Token() {
      super(Functions.gcx_cancel_create(), Natives::gcx_cancel_destroy);
    }

    static long handleOf(Token token) {
      return token == null ? 0 : token.handle();
    }
  }

  static void check(Duration timeout) {
    if (timeout.isNegative()) {
      throw new GcxException.InvalidValue(
          "negative timeout: " + timeout + "; Duration.ZERO does not wait");
    }
  }

  static int milliseconds(Duration timeout) {
    return timeout.compareTo(LONGEST) > 0
        ? Raw.GCX_FOREVER
        : (int) timeout.plusNanos(999_999).toMillis();
  }

  /** Returns the handle of a lease or a reservation. Passes null if there is nothing to cancel. */
  static long forSms(Duration timeout, Cancel cancel, ToLongFunction<Token> acquire) {
    boolean waits = !timeout.isZero();
    if (!waits && cancel == null) {
      return acquire.applyAsLong(null);
    }
    try (Token token = new Token()) {
      LongSupplier call = () -> acquire.applyAsLong(token);
      boolean elsewhere = waits && VirtualThreads.isCurrent();
      return new Wait(token).in(cancel, waits, elsewhere ? () -> WaitThread.call(call) : call);
    }
  }

  /** Progress and cancel may be null. */
  static void prepare(List<SmResource> resources, int flags, Progress progress, Cancel cancel) {
    List<SmResource> copy = List.copyOf(resources);
    try (Token token = new Token()) {
      Wait wait = new Wait(token);
      Preparing preparing = progress == null ? null : new Preparing(progress, wait);
      wait.in(
          cancel,
          true,
          () -> {
            Functions.gcx_cache_prepare(copy, flags, token, preparing);
            return 0;
          });
    }
  }

  private long in(Cancel cancel, boolean interruptible, LongSupplier call) {
    try {
      if (interruptible) {
        begin();
      }
      if (cancel != null) {
        cancel.add(this);
      }
      return call.getAsLong();
    } catch (GcxException.Cancelled problem) {
      boolean cancelled = cancel != null && cancel.isSignalled();
      if (cancelled || !Thread.currentThread().isInterrupted()) {
        throw problem;
      }
      String reason = problem.detail().replace("gcx_cancel_signal", "Thread.interrupt");
      throw new GcxException.Cancelled(problem.code(), problem.resultName(), reason);
    } finally {
      if (cancel != null) {
        cancel.remove(this);
      }
      unblock();
    }
  }

  /** Ends the use of the token. The thread's interrupted status does not change. */
  private void unblock() {
    try {
      end(true);
    } catch (AsynchronousCloseException interrupted) {
      // The library has thrown already, or the call succeeded before the interruption.
    }
    cancel();
  }

  /** Ends the call; does nothing after the first time. */
  void cancel() {
    try {
      close();
    } catch (IOException impossible) {
      throw new AssertionError(impossible);
    }
  }

  /** Called once, by the first that closes this. */
  @Override
  protected void implCloseChannel() {
    Functions.gcx_cancel_signal(token);
  }
}

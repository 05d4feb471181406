package gcx;

import java.io.IOException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;

/**
 * One call that can be given up, by the interruption of its thread or by a {@link Cancel}: a wait
 * for SMs, or contexts that are made ahead of time. It is a channel, since those are what Java
 * closes when a thread that is inside a call is interrupted.
 */
final class Wait extends AbstractInterruptibleChannel {
  /** The longest wait that has an end: the number after it means none. */
  private static final Duration LONGEST = Duration.ofMillis(0xffff_fffeL);

  private final Token token;

  private Wait(Token token) {
    this.token = token;
  }

  /** The library's own: one for each wait, since one that was signalled is so for good. */
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
          "a timeout of " + timeout + " is before now; Duration.ZERO doesn't wait");
    }
  }

  /** As the library counts a timeout. */
  static int milliseconds(Duration timeout) {
    return timeout.compareTo(LONGEST) > 0
        ? Raw.GCX_FOREVER
        : (int) timeout.plusNanos(999_999).toMillis();
  }

  /** The handle of a lease or a reservation; cancel may be null, and so the token that is given. */
  static long forSms(Duration timeout, Cancel cancel, ToLongFunction<Token> take) {
    boolean waits = !timeout.isZero();
    if (!waits && cancel == null) {
      return take.applyAsLong(null);
    }
    try (Token token = new Token()) {
      LongSupplier call = () -> take.applyAsLong(token);
      boolean elsewhere = waits && VirtualThreads.isCurrent();
      return new Wait(token).in(cancel, waits, elsewhere ? () -> WaitThread.call(call) : call);
    }
  }

  /** Progress and cancel may be null. */
  static void prepare(List<SmResource> resources, int flags, Progress progress, Cancel cancel) {
    List<SmResource> wanted = List.copyOf(resources);
    try (Token token = new Token()) {
      Wait wait = new Wait(token);
      Preparing told = progress == null ? null : new Preparing(progress, wait);
      wait.in(
          cancel,
          true,
          () -> {
            Functions.gcx_cache_prepare(wanted, flags, token, told);
            return 0;
          });
    }
  }

  private long in(Cancel cancel, boolean byInterruption, LongSupplier call) {
    try {
      if (byInterruption) {
        begin();
      }
      if (cancel != null) {
        cancel.add(this);
      }
      return call.getAsLong();
    } catch (GcxException.NotPermitted problem) {
      boolean cancelled = cancel != null && cancel.isSignalled();
      boolean interrupted = Thread.currentThread().isInterrupted();
      throw interrupted && !cancelled ? byInterruption(problem) : problem;
    } finally {
      if (cancel != null) {
        cancel.remove(this);
      }
      unblock();
    }
  }

  /** The error of a wait that the interruption of its thread has ended. */
  private static GcxException.NotPermitted byInterruption(GcxException.NotPermitted problem) {
    String reason = problem.detail().replace("gcx_cancel_signal", "Thread.interrupt");
    return new GcxException.NotPermitted(problem.code(), problem.resultName(), reason);
  }

  /** From here on nobody signals the token. The thread's interrupted status stays as it is. */
  private void unblock() {
    try {
      end(true);
    } catch (AsynchronousCloseException interrupted) {
      // The library has said so already, or has given the SMs just before.
    }
    giveUp();
  }

  /** What waits with this returns. Again it does nothing. */
  void giveUp() {
    try {
      close();
    } catch (IOException impossible) {
      throw new AssertionError(impossible);
    }
  }

  /** Called once, by whoever closes this first. */
  @Override
  protected void implCloseChannel() {
    Functions.gcx_cancel_signal(token);
  }
}

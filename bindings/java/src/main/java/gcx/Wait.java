package gcx;

import java.io.IOException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * One call that can be given up, by the interruption of its thread or by a {@link Cancel}: a wait
 * for SMs, or contexts that are made ahead of time. It is a channel, since those are what Java
 * closes when a thread that is inside a call is interrupted.
 */
final class Wait extends AbstractInterruptibleChannel {
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

  /** The handle of a lease. */
  static long acquire(Device device, LeaseRequest request) {
    boolean waits = !request.timeout().isZero();
    if (!waits && request.cancel() == null) {
      return request.acquire(device, null);
    }
    try (Token token = new Token()) {
      return new Wait(token).in(request.cancel(), waits, () -> request.acquire(device, token));
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
      throw interrupted && !cancelled ? problem.byInterruption() : problem;
    } finally {
      if (cancel != null) {
        cancel.remove(this);
      }
      unblock();
    }
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

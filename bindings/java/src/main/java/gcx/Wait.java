package gcx;

import java.io.IOException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;

/**
 * One wait for SMs, which the interruption of its thread gives up, or a {@link Cancel}. It is a
 * channel, since those are what Java closes when a thread that is inside a call is interrupted.
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
    if (request.timeout().isZero() && request.cancel() == null) {
      return request.acquire(device, null);
    }
    try (Token token = new Token()) {
      return new Wait(token).acquireIn(device, request);
    }
  }

  private long acquireIn(Device device, LeaseRequest request) {
    Cancel cancel = request.cancel();
    try {
      if (!request.timeout().isZero()) {
        begin();
      }
      if (cancel != null) {
        cancel.add(this);
      }
      return request.acquire(device, token);
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

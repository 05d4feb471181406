package gcx;

import java.util.HashSet;
import java.util.Set;

/**
 * Cancels blocking calls from another thread: waits for SMs, and {@link Cache#prepare}. One may be
 * passed to any number of calls. There is nothing to close.
 */
public final class Cancel {
  private final Set<Wait> waits = new HashSet<>();
  private boolean signalled;

  /** Creates one that is not signalled. */
  public Cancel() {}

  /**
   * Cancels all present and later calls with this: {@link Device#acquire(LeaseRequest)}, {@link
   * Device#reserve(ReservationParams)} and {@link Cache#prepare} throw {@link
   * GcxException.Cancelled}. Permanent; signalling again does nothing.
   */
  public synchronized void signal() {
    signalled = true;
    waits.forEach(Wait::cancel);
  }

  /** {@return whether it was signalled} */
  public synchronized boolean isSignalled() {
    return signalled;
  }

  synchronized void add(Wait wait) {
    waits.add(wait);
    if (signalled) {
      wait.cancel();
    }
  }

  synchronized void remove(Wait wait) {
    waits.remove(wait);
  }

  @Override
  public String toString() {
    return isSignalled() ? "cancel, signalled" : "cancel";
  }
}

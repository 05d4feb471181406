package gcx;

import java.util.HashSet;
import java.util.Set;

/**
 * What calls that take long are given up with, from another thread: waits for SMs, and contexts
 * that are made ahead of time. One may be in any number of them. There is nothing to close.
 *
 * <p>Every method may be called from any thread, at any time.
 */
public final class Cancel {
  private final Set<Wait> waits = new HashSet<>();
  private boolean signalled;

  /** A new one, with which nothing was given up. */
  public Cancel() {}

  /**
   * Gives up all that waits with this, and all that will: {@link Device#acquire(LeaseRequest)},
   * {@link Device#reserve(ReservationParams)} and {@link Cache#prepare} answer {@link
   * GcxException.NotPermitted}. For good; signalling again does nothing.
   */
  public synchronized void signal() {
    signalled = true;
    waits.forEach(Wait::giveUp);
  }

  /**
   * Whether it was signalled.
   *
   * @return whether waits with it are given up
   */
  public synchronized boolean isSignalled() {
    return signalled;
  }

  synchronized void add(Wait wait) {
    waits.add(wait);
    if (signalled) {
      wait.giveUp();
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

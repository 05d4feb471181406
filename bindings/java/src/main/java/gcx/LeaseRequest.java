package gcx;

import java.time.Duration;
import java.util.Objects;

/**
 * Which SMs a lease is to have, and how long to wait for them.
 *
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} takes all that are free
 * @param minSmCount so many will do if those asked for can't be had; 0: no less than asked for, and
 *     of the rest one atom
 * @param isShared whether others that are shared may have its SMs too
 * @param exclusiveSmCount of a shared one: so many of the SMs are its alone
 * @param requireWorkqueues whether a driver is refused that has no queues of its own for it, before
 *     CUDA 13.1
 * @param family the family of its atoms: coscheduled, fine or max-cluster; {@link SmFamily#NONE}:
 *     the reservation's of a lease in a {@link Reservation}, else coscheduled
 * @param timeout how long to wait, in milliseconds rounded up: zero doesn't; {@link #FOREVER}, and
 *     anything beyond 49 days, has no end
 * @param cancel gives the wait up from another thread; null: nothing but the interruption of the
 *     thread that waits
 * @param name for messages and lists: up to 63 bytes of UTF-8; empty: none
 */
public record LeaseRequest(
    long smCount,
    long minSmCount,
    boolean isShared,
    long exclusiveSmCount,
    boolean requireWorkqueues,
    SmFamily family,
    Duration timeout,
    Cancel cancel,
    String name) {
  /** A wait without end. */
  public static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

  /**
   * A request of these fields.
   *
   * @param smCount SMs, at least 1
   * @param minSmCount SMs
   * @param isShared whether others may have them too
   * @param exclusiveSmCount SMs
   * @param requireWorkqueues whether it insists on queues of its own
   * @param family the family
   * @param timeout how long to wait
   * @param cancel what gives the wait up, or null
   * @param name the name, or empty
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or doesn't fit into 32
   *     bits; the timeout is negative
   */
  public LeaseRequest {
    SmRequest.checkWanted(smCount, "LeaseRequest.rest()");
    SmRequest.check(minSmCount, exclusiveSmCount);
    Objects.requireNonNull(family, "family");
    Objects.requireNonNull(name, "name");
    Wait.check(timeout);
  }

  /**
   * So many SMs, or the next count that can be given, without a wait.
   *
   * @param smCount SMs, at least 1
   * @return the request
   * @throws GcxException.InvalidValue the count is less than 1
   */
  public static LeaseRequest of(long smCount) {
    return asked(smCount);
  }

  /**
   * All SMs that can be had, without a wait.
   *
   * @return the request
   */
  public static LeaseRequest rest() {
    return asked(SmRequest.REST);
  }

  private static LeaseRequest asked(long smCount) {
    return new LeaseRequest(smCount, 0, false, 0, false, SmFamily.NONE, Duration.ZERO, null, "");
  }

  /**
   * The same for which fewer SMs will do, if those asked for can't be had.
   *
   * @param count SMs
   * @return the request
   */
  public LeaseRequest withMinimum(long count) {
    return new LeaseRequest(
        smCount,
        count,
        isShared,
        exclusiveSmCount,
        requireWorkqueues,
        family,
        timeout,
        cancel,
        name);
  }

  /**
   * The same whose SMs others that are shared may have too.
   *
   * @return the request
   */
  public LeaseRequest withSharing() {
    return withSharing(0);
  }

  /**
   * The same whose SMs others that are shared may have too, but for some.
   *
   * @param exclusiveCount SMs that are its alone
   * @return the request
   */
  public LeaseRequest withSharing(long exclusiveCount) {
    return new LeaseRequest(
        smCount,
        minSmCount,
        true,
        exclusiveCount,
        requireWorkqueues,
        family,
        timeout,
        cancel,
        name);
  }

  /**
   * The same that has queues of its own: a driver before CUDA 13.1, which has none, is refused with
   * {@link GcxException.NotSupported}. From 13.1 on leases have them without asking, where
   * possible.
   *
   * @return the request
   */
  public LeaseRequest withOwnQueues() {
    return new LeaseRequest(
        smCount, minSmCount, isShared, exclusiveSmCount, true, family, timeout, cancel, name);
  }

  /**
   * The same of another family.
   *
   * @param other coscheduled, fine or max-cluster
   * @return the request
   */
  public LeaseRequest withFamily(SmFamily other) {
    return new LeaseRequest(
        smCount,
        minSmCount,
        isShared,
        exclusiveSmCount,
        requireWorkqueues,
        other,
        timeout,
        cancel,
        name);
  }

  /**
   * The same that waits.
   *
   * @param duration how long; {@link #FOREVER} has no end
   * @return the request
   */
  public LeaseRequest withTimeout(Duration duration) {
    return new LeaseRequest(
        smCount,
        minSmCount,
        isShared,
        exclusiveSmCount,
        requireWorkqueues,
        family,
        duration,
        cancel,
        name);
  }

  /**
   * The same whose wait can be given up from another thread.
   *
   * @param given what gives it up
   * @return the request
   */
  public LeaseRequest withCancel(Cancel given) {
    return new LeaseRequest(
        smCount,
        minSmCount,
        isShared,
        exclusiveSmCount,
        requireWorkqueues,
        family,
        timeout,
        given,
        name);
  }

  /**
   * The same with a name, for messages and lists.
   *
   * @param text up to 63 bytes of UTF-8
   * @return the request
   */
  public LeaseRequest withName(String text) {
    return new LeaseRequest(
        smCount,
        minSmCount,
        isShared,
        exclusiveSmCount,
        requireWorkqueues,
        family,
        timeout,
        cancel,
        text);
  }

  /** The handle of a lease; the token, or null, gives the wait up. */
  long acquire(Device device, Wait.Token token) {
    return Functions.gcx_lease_acquire(
        device.ordinal(),
        (int) smCount,
        flags(),
        family.number,
        (int) minSmCount,
        (int) exclusiveSmCount,
        Wait.milliseconds(timeout),
        token,
        name);
  }

  /** The handle of a lease in a reservation. */
  long acquire(Reservation reservation, Wait.Token token) {
    return Functions.gcx_reservation_acquire_lease(
        reservation,
        (int) smCount,
        flags(),
        family.number,
        (int) minSmCount,
        (int) exclusiveSmCount,
        Wait.milliseconds(timeout),
        token,
        name);
  }

  private int flags() {
    return (isShared ? Raw.GCX_LEASE_SHARED : 0)
        | (requireWorkqueues ? Raw.GCX_LEASE_REQUIRE_WORKQUEUES : 0);
  }
}

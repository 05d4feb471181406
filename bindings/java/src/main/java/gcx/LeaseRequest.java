package gcx;

import java.time.Duration;
import java.util.Objects;

/**
 * A request for a lease.
 *
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} for all free SMs
 * @param minSmCount the smallest acceptable count; 0 for the requested one (or one atom with the
 *     rest)
 * @param isShared whether other shared leases may have the same SMs
 * @param exclusiveSmCount how many SMs of a shared lease are exclusive
 * @param requireWorkqueues whether to fail on a driver without exclusive workqueues, before CUDA
 *     13.1
 * @param family coscheduled, fine or max-cluster; {@link SmFamily#NONE} for that of the {@link
 *     Reservation}, or coscheduled outside of one
 * @param timeout how long to wait, rounded up to milliseconds; zero never waits, {@link #FOREVER}
 *     and everything beyond 49 days waits without an end
 * @param cancel aborts the wait from another thread, or null
 * @param name for messages and lists: up to 63 bytes of UTF-8, or empty
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
  /** A wait without an end. */
  public static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

  /**
   * Creates a request.
   *
   * @param smCount SMs, at least 1
   * @param minSmCount the smallest acceptable count, or 0
   * @param isShared whether other shared leases may have the same SMs
   * @param exclusiveSmCount exclusive SMs of a shared lease
   * @param requireWorkqueues whether exclusive workqueues are required
   * @param family the family
   * @param timeout how long to wait
   * @param cancel aborts the wait, or null
   * @param name the name, or empty
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or more than 32 bits; the
   *     timeout is negative
   */
  public LeaseRequest {
    SmRequest.checkRequested(smCount, "LeaseRequest.rest()");
    SmRequest.check(minSmCount, exclusiveSmCount);
    Objects.requireNonNull(family, "family");
    Objects.requireNonNull(name, "name");
    Wait.check(timeout);
  }

  /**
   * {@return a request for so many SMs, or the next possible count, without a wait}
   *
   * @param smCount SMs, at least 1
   */
  public static LeaseRequest of(long smCount) {
    return new LeaseRequest(smCount, 0, false, 0, false, SmFamily.NONE, Duration.ZERO, null, "");
  }

  /** {@return a request for all free SMs, without a wait} */
  public static LeaseRequest rest() {
    return of(SmRequest.REST);
  }

  /**
   * {@return this request with a smallest acceptable count}
   *
   * @param count SMs
   */
  public LeaseRequest withMinimum(long count) {
    return with(count, isShared, exclusiveSmCount, requireWorkqueues, family);
  }

  /** {@return this request for a lease that shares its SMs with other shared leases} */
  public LeaseRequest withSharing() {
    return withSharing(0);
  }

  /**
   * {@return this request for a lease that shares its SMs, except some, with other shared leases}
   *
   * @param exclusiveCount how many SMs are exclusive
   */
  public LeaseRequest withSharing(long exclusiveCount) {
    return with(minSmCount, true, exclusiveCount, requireWorkqueues, family);
  }

  /**
   * {@return this request for a lease with exclusive workqueues} Drivers before CUDA 13.1 have
   * none: {@link GcxException.NotSupported}. From 13.1 on leases have them where possible anyway.
   */
  public LeaseRequest withOwnQueues() {
    return with(minSmCount, isShared, exclusiveSmCount, true, family);
  }

  /**
   * {@return this request for another family}
   *
   * @param other coscheduled, fine or max-cluster
   */
  public LeaseRequest withFamily(SmFamily other) {
    return with(minSmCount, isShared, exclusiveSmCount, requireWorkqueues, other);
  }

  /**
   * {@return this request with a wait}
   *
   * @param duration how long to wait
   */
  public LeaseRequest withTimeout(Duration duration) {
    return with(duration, cancel, name);
  }

  /**
   * {@return this request whose wait another thread can abort}
   *
   * @param given what aborts it
   */
  public LeaseRequest withCancel(Cancel given) {
    return with(timeout, given, name);
  }

  /**
   * {@return this request with a name for messages and lists}
   *
   * @param text up to 63 bytes of UTF-8
   */
  public LeaseRequest withName(String text) {
    return with(timeout, cancel, text);
  }

  private LeaseRequest with(
      long minimum, boolean shared, long exclusive, boolean workqueues, SmFamily of) {
    return new LeaseRequest(
        smCount, minimum, shared, exclusive, workqueues, of, timeout, cancel, name);
  }

  private LeaseRequest with(Duration wait, Cancel by, String text) {
    return new LeaseRequest(
        smCount, minSmCount, isShared, exclusiveSmCount, requireWorkqueues, family, wait, by, text);
  }

  /** Acquires SMs of the device, or of the reservation if that is not null; returns the handle. */
  long acquire(Device device, Reservation reservation, Wait.Token token) {
    int flags =
        (isShared ? Raw.GCX_LEASE_SHARED : 0)
            | (requireWorkqueues ? Raw.GCX_LEASE_REQUIRE_WORKQUEUES : 0);
    int count = (int) smCount;
    int minimum = (int) minSmCount;
    int exclusive = (int) exclusiveSmCount;
    int wait = Wait.milliseconds(timeout);
    int of = family.number;
    int ordinal = reservation == null ? device.ordinal() : -1;
    return Functions.gcx_lease_acquire(
        ordinal, count, flags, of, minimum, exclusive, wait, token, name, reservation);
  }
}

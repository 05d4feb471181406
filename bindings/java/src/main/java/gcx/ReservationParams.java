package gcx;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * A request for a reservation.
 *
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} for all free SMs
 * @param minSmCount the smallest acceptable count; 0 for the requested one (or one atom with the
 *     rest)
 * @param family coscheduled, fine or max-cluster
 * @param timeout how long to wait, rounded up to milliseconds; zero never waits, {@link
 *     LeaseRequest#FOREVER} and everything beyond 49 days waits without an end
 * @param cancel aborts the wait from another thread, or null
 * @param name for messages and lists: up to 63 bytes of UTF-8, or empty
 * @param folder the folder that the processes share, an absolute path: one of the user, of mode
 *     700, or of a group, of mode 2770 or 3770; null for the environment's GCX_RESERVATION_DIR or,
 *     if that isn't set, the user's default folder
 */
public record ReservationParams(
    long smCount,
    long minSmCount,
    SmFamily family,
    Duration timeout,
    Cancel cancel,
    String name,
    Path folder) {
  /**
   * Creates a request.
   *
   * @param smCount SMs, at least 1
   * @param minSmCount the smallest acceptable count, or 0
   * @param family the family
   * @param timeout how long to wait
   * @param cancel aborts the wait, or null
   * @param name the name, or empty
   * @param folder the folder, or null
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or more than 32 bits; the
   *     timeout is negative
   */
  public ReservationParams {
    SmRequest.checkRequested(smCount, "ReservationParams.rest()");
    SmRequest.check(minSmCount);
    Objects.requireNonNull(family, "family");
    Objects.requireNonNull(name, "name");
    Wait.check(timeout);
  }

  /**
   * {@return a request for so many SMs of the coscheduled family, or the next possible count,
   * without a wait}
   *
   * @param smCount SMs, at least 1
   */
  public static ReservationParams of(long smCount) {
    return new ReservationParams(smCount, 0, SmFamily.COSCHEDULED, Duration.ZERO, null, "", null);
  }

  /** {@return a request for all free SMs of the coscheduled family, without a wait} */
  public static ReservationParams rest() {
    return of(SmRequest.REST);
  }

  /**
   * {@return this request with a smallest acceptable count}
   *
   * @param count SMs
   */
  public ReservationParams withMinimum(long count) {
    return new ReservationParams(smCount, count, family, timeout, cancel, name, folder);
  }

  /**
   * {@return this request for another family}
   *
   * @param other coscheduled, fine or max-cluster
   */
  public ReservationParams withFamily(SmFamily other) {
    return new ReservationParams(smCount, minSmCount, other, timeout, cancel, name, folder);
  }

  /**
   * {@return this request with a wait}
   *
   * @param duration how long to wait
   */
  public ReservationParams withTimeout(Duration duration) {
    return new ReservationParams(smCount, minSmCount, family, duration, cancel, name, folder);
  }

  /**
   * {@return this request whose wait another thread can abort}
   *
   * @param given what aborts it
   */
  public ReservationParams withCancel(Cancel given) {
    return new ReservationParams(smCount, minSmCount, family, timeout, given, name, folder);
  }

  /**
   * {@return this request with a name for messages and lists}
   *
   * @param text up to 63 bytes of UTF-8
   */
  public ReservationParams withName(String text) {
    return new ReservationParams(smCount, minSmCount, family, timeout, cancel, text, folder);
  }

  /**
   * {@return this request in another folder}
   *
   * @param path an absolute path
   */
  public ReservationParams withFolder(Path path) {
    return new ReservationParams(smCount, minSmCount, family, timeout, cancel, name, path);
  }

  /** Acquires the reservation and returns its handle. */
  long acquire(Device device, Wait.Token token) {
    return Functions.gcx_reservation_acquire(
        device.ordinal(),
        (int) smCount,
        0,
        family.number,
        (int) minSmCount,
        Wait.milliseconds(timeout),
        token,
        name,
        folder == null ? null : folder.toString());
  }
}

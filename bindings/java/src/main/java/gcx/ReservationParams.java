package gcx;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * Which SMs a reservation is to have, and how long to wait for them.
 *
 * @param smCount SMs, rounded up to whole atoms; {@link SmRequest#REST} takes all that are free
 * @param minSmCount so many will do if those asked for can't be had; 0: no less than asked for, and
 *     of the rest one atom
 * @param family the family of its atoms: coscheduled, fine or max-cluster
 * @param timeout how long to wait, in milliseconds rounded up: zero doesn't; {@link #FOREVER}, and
 *     anything beyond 49 days, has no end
 * @param cancel gives the wait up from another thread; null: nothing but the interruption of the
 *     thread that waits
 * @param name for messages and lists: up to 63 bytes of UTF-8; empty: none
 * @param folder where the processes agree, an absolute path: one of the user's own, of mode 700, or
 *     a group's, of mode 2770 or 3770; null: GCX_RESERVATION_DIR of the environment or, if that
 *     isn't set, the user's usual one
 */
public record ReservationParams(
    long smCount,
    long minSmCount,
    SmFamily family,
    Duration timeout,
    Cancel cancel,
    String name,
    Path folder) {
  /** A wait without end. */
  public static final Duration FOREVER = LeaseRequest.FOREVER;

  /**
   * A request of these fields.
   *
   * @param smCount SMs, at least 1
   * @param minSmCount SMs
   * @param family the family
   * @param timeout how long to wait
   * @param cancel what gives the wait up, or null
   * @param name the name, or empty
   * @param folder the folder, or null
   * @throws GcxException.InvalidValue smCount is 0; a count is negative or doesn't fit into 32
   *     bits; the timeout is negative
   */
  public ReservationParams {
    SmRequest.checkWanted(smCount, "ReservationParams.rest()");
    SmRequest.check(minSmCount);
    Objects.requireNonNull(family, "family");
    Objects.requireNonNull(name, "name");
    Wait.check(timeout);
  }

  /**
   * So many SMs of the coscheduled family, or the next count that can be given, without a wait.
   *
   * @param smCount SMs, at least 1
   * @return the request
   * @throws GcxException.InvalidValue the count is less than 1
   */
  public static ReservationParams of(long smCount) {
    return asked(smCount);
  }

  /**
   * All SMs of the coscheduled family that can be had, without a wait.
   *
   * @return the request
   */
  public static ReservationParams rest() {
    return asked(SmRequest.REST);
  }

  private static ReservationParams asked(long smCount) {
    return new ReservationParams(smCount, 0, SmFamily.COSCHEDULED, Duration.ZERO, null, "", null);
  }

  /**
   * The same for which fewer SMs will do, if those asked for can't be had.
   *
   * @param count SMs
   * @return the request
   */
  public ReservationParams withMinimum(long count) {
    return new ReservationParams(smCount, count, family, timeout, cancel, name, folder);
  }

  /**
   * The same of another family.
   *
   * @param other coscheduled, fine or max-cluster
   * @return the request
   */
  public ReservationParams withFamily(SmFamily other) {
    return new ReservationParams(smCount, minSmCount, other, timeout, cancel, name, folder);
  }

  /**
   * The same that waits.
   *
   * @param duration how long; {@link #FOREVER} has no end
   * @return the request
   */
  public ReservationParams withTimeout(Duration duration) {
    return new ReservationParams(smCount, minSmCount, family, duration, cancel, name, folder);
  }

  /**
   * The same whose wait can be given up from another thread.
   *
   * @param given what gives it up
   * @return the request
   */
  public ReservationParams withCancel(Cancel given) {
    return new ReservationParams(smCount, minSmCount, family, timeout, given, name, folder);
  }

  /**
   * The same with a name, for messages and lists.
   *
   * @param text up to 63 bytes of UTF-8
   * @return the request
   */
  public ReservationParams withName(String text) {
    return new ReservationParams(smCount, minSmCount, family, timeout, cancel, text, folder);
  }

  /**
   * The same in another folder.
   *
   * @param path an absolute path
   * @return the request
   */
  public ReservationParams withFolder(Path path) {
    return new ReservationParams(smCount, minSmCount, family, timeout, cancel, name, path);
  }

  /** The handle of a reservation; the token, or null, gives the wait up. */
  long take(Device device, Wait.Token token) {
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

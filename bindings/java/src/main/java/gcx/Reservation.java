package gcx;

import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/**
 * SMs of a device that no other process reserves in the same folder. {@link Device#reserve(long)}
 * returns one; docs/explanation/reservations.md explains what reservations promise, and why only
 * MPS isolates.
 *
 * <p>A reservation ends when every process that acquired or joined it has closed it or has ended.
 * Work that still runs then shares its SMs with the next owner, so close contexts first or wait for
 * them. A lease of {@link #acquire(LeaseRequest)} keeps the reservation; a context over {@link
 * #sms()} does not, so keep a reference to the reservation, or the collector closes it.
 *
 * <p>Tested only on the simulated driver so far.
 */
public final class Reservation extends ReservationMethods {
  Reservation(long handle) {
    super(handle, Natives::gcx_reservation_release);
  }

  /**
   * Joins a reservation of this process or another one. Opens no driver.
   *
   * @param token the {@link #token()} of the reservation
   * @return the reservation, to be closed by the caller
   * @see Raw#gcx_reservation_join
   */
  public static Reservation join(String token) {
    return new Reservation(Functions.gcx_reservation_join(Objects.requireNonNull(token, "token")));
  }

  /** {@return {@link #live(Path)} of the default folder, see {@link ReservationParams#folder}} */
  public static List<LiveReservation> live() {
    return List.of(Functions.gcx_reservation_list(null));
  }

  /**
   * Lists the reservations of a folder, of all processes. Opens no driver and needs no GPU.
   *
   * @param folder an absolute path
   * @return by device: first the reservations in the order in which they were acquired, then the
   *     waiting requests in the order in which they are served
   * @see Raw#gcx_reservation_list
   */
  public static List<LiveReservation> live(Path folder) {
    return List.of(Functions.gcx_reservation_list(folder.toString()));
  }

  /**
   * {@return the token by which another process joins the reservation, see {@link #join}} It is the
   * path of the reservation's file, so the other process must see the folder at the same path.
   */
  public String token() {
    return Upcalls.text(Functions.gcx_reservation_get_token(this));
  }

  /**
   * Acquires SMs of the reservation without waiting, like {@link #acquire(LeaseRequest)}.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the lease, to be closed by the caller
   */
  public Lease acquire(long smCount) {
    return acquire(LeaseRequest.of(smCount));
  }

  /**
   * Acquires SMs of the reservation, like {@link Device#acquire(LeaseRequest)}. Its leases are
   * resized only together with each other.
   *
   * @param request which SMs, and how long to wait for them
   * @return the lease, to be closed by the caller
   * @see Raw#gcx_lease_acquire
   */
  public Lease acquire(LeaseRequest request) {
    return new Lease(
        Wait.forSms(
            request.timeout(), request.cancel(), token -> request.acquire(null, this, token)));
  }
}

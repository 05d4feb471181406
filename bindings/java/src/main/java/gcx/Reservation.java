package gcx;

import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/**
 * SMs of a device that no other process has: the processes of a host agree on them, as long as all
 * take theirs in the same folder. Nobody is bound by it who takes none. {@link
 * Device#reserve(long)} makes them.
 *
 * <p>Under MPS, reservations of two processes are different SMs. Without it processes take turns on
 * the whole device and reservations isolate nothing, of which the log has a warning; {@link
 * Device#mps} tells.
 *
 * <p>A reservation ends when its last process has closed it or has ended, however it ended. Work
 * that still runs then goes on, on SMs that somebody else may have: so close contexts first, or
 * wait for them. A lease of {@link #acquire(LeaseRequest)} keeps the reservation; a context of
 * {@link #sms()} doesn't, so the program keeps a reference to the reservation for as long, else the
 * collector closes it.
 *
 * <p>Every method may be called from any thread, at any time. Tested on the simulated driver alone
 * so far.
 */
public final class Reservation extends Owned {
  Reservation(long handle) {
    super(handle, Natives::gcx_reservation_release);
  }

  /**
   * Joins a reservation that another process, or this one, has: it lasts until all who joined have
   * given it up. Opens no driver.
   *
   * @param token what {@link #token()} gave there
   * @return the reservation, to be closed by the caller
   * @throws GcxException.NotFound the reservation has ended
   * @throws GcxException.InvalidValue it is no token
   * @throws GcxException.NotPermitted the folder is another user's, or too many may enter it
   * @throws GcxException the file can't be believed ({@link Result#OPERATING_SYSTEM})
   */
  public static Reservation join(String token) {
    return new Reservation(Functions.gcx_reservation_join(Objects.requireNonNull(token, "token")));
  }

  /**
   * The reservations of the folder of GCX_RESERVATION_DIR or, if that isn't set, of the user's own
   * one: {@link #live(Path)}.
   *
   * @return what lives and what waits
   */
  public static List<LiveReservation> live() {
    return List.of(Functions.gcx_reservation_list(null));
  }

  /**
   * The reservations of a folder, of this process and others. Opens no driver and needs no GPU.
   *
   * @param folder an absolute path
   * @return by device, of each those that have SMs in the order in which they were taken, then
   *     those that wait, the first first
   * @throws GcxException.NotPermitted the folder is another user's, or too many may enter it
   * @throws GcxException the folder isn't there ({@link Result#OPERATING_SYSTEM})
   */
  public static List<LiveReservation> live(Path folder) {
    return List.of(Functions.gcx_reservation_list(folder.toString()));
  }

  /**
   * What another process joins the reservation by, see {@link #join}: to be handed to it in its
   * environment or on its command line. It is the path of the reservation's file, so that it works
   * where that path leads to the same folder.
   *
   * @return the token
   */
  public String token() {
    return Upcalls.text(Functions.gcx_reservation_get_token(this));
  }

  /**
   * What is known of it. Opens no driver.
   *
   * @return counts, id and name
   */
  public ReservationInfo info() {
    return Functions.gcx_reservation_get_info(this);
  }

  /**
   * How many SMs it has.
   *
   * @return the SMs
   */
  public int smCount() {
    return info().smCount();
  }

  /**
   * Its SMs as a resource of this process, to be split and to make contexts of. Opens the driver.
   *
   * @return the SMs, as one resource
   * @throws GcxException.NoDevice this process doesn't see the device
   * @throws GcxException.ResourceConfiguration it sees other atoms than the process that took the
   *     reservation
   */
  public SmResource sms() {
    return new SmResource(Functions.gcx_reservation_get_resource(this));
  }

  /**
   * Acquires SMs of the reservation, without waiting: {@link #acquire(LeaseRequest)} of a count
   * alone.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the lease, to be closed by the caller
   */
  public Lease acquire(long smCount) {
    return acquire(LeaseRequest.of(smCount));
  }

  /**
   * {@link Device#acquire(LeaseRequest)} out of the reservation's SMs alone, and so are the lease's
   * later changes: leases of a reservation change only together with leases of the same
   * reservation. The lease keeps the reservation, when this is closed too. A lease that was
   * acquired without a reservation may have the same SMs as a reservation, but never as another
   * lease.
   *
   * @param request which SMs, and how long to wait for them
   * @return the lease, to be closed by the caller
   * @throws GcxException.AlreadyAcquired other leases have the SMs, or wait for them
   * @throws GcxException.NotPermitted the wait was given up
   * @throws GcxException.ResourceConfiguration the reservation has not so many SMs; or as {@link
   *     #sms}
   * @throws GcxException.NoDevice this process doesn't see the device
   * @throws GcxException.InvalidValue the request is of another family than the reservation
   */
  public Lease acquire(LeaseRequest request) {
    return new Lease(
        Wait.forSms(request.timeout(), request.cancel(), token -> request.acquire(this, token)));
  }

  /**
   * Whether it was closed.
   *
   * @return whether using it is an error
   */
  public boolean isClosed() {
    return !isOpen();
  }

  @Override
  public String toString() {
    return isOpen() ? "reservation" : "reservation, closed";
  }
}

package gcx;

import java.util.List;
import java.util.stream.IntStream;

/**
 * A device.
 *
 * @param ordinal CUDA's number of it, after CUDA_VISIBLE_DEVICES; the first is 0
 */
public record Device(int ordinal) {
  /** {@return the number of devices} */
  public static int count() {
    return Functions.gcx_device_get_count();
  }

  /** {@return all devices} */
  public static List<Device> all() {
    return IntStream.range(0, count()).mapToObj(Device::new).toList();
  }

  /** Returns the ordinal for a call in which -1 means all devices. */
  int existing() {
    if (ordinal < 0) {
      throw new GcxException.InvalidDevice("there is no device " + ordinal);
    }
    return ordinal;
  }

  /**
   * {@return name and counts} Creates no context.
   *
   * @throws GcxException.InvalidDevice there is no such device
   */
  public DeviceInfo info() {
    return Functions.gcx_device_get_info(ordinal);
  }

  /** {@return all its SMs, which can be split in any family} */
  public SmResource sms() {
    return new SmResource(Functions.gcx_device_get_resource(ordinal, ResourceType.SM.number));
  }

  /**
   * {@return its default workqueue configuration, from CUDA 13.1 on}
   *
   * @throws GcxException.NotSupported the driver is older
   */
  public WorkqueueResource workqueue() {
    return new WorkqueueResource(
        Functions.gcx_device_get_resource(ordinal, ResourceType.WORKQUEUE_CONFIG.number));
  }

  /**
   * Acquires SMs for exclusive use within this process without waiting, like {@link
   * #acquire(LeaseRequest)}.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the lease, to be closed by the caller
   */
  public Lease acquire(long smCount) {
    return acquire(LeaseRequest.of(smCount));
  }

  /**
   * Acquires SMs for exclusive use within this process; {@link Lease#info} returns what was
   * acquired. The first lease over a set of SMs creates its context; later ones take microseconds.
   *
   * <p>A request with a timeout waits behind earlier ones. Its {@link Cancel} and the interruption
   * of the thread, whose interrupted status stays set, cancel the wait.
   *
   * @param request which SMs, and how long to wait for them
   * @return the lease, to be closed by the caller
   * @throws GcxException.AlreadyAcquired other leases or requests have the SMs, and there is no
   *     timeout; the message names them
   * @throws GcxException.Timeout they still had the SMs after the timeout
   * @throws GcxException.Cancelled the wait was cancelled
   * @throws GcxException.ResourceConfiguration the device has fewer SMs than requested
   * @throws GcxException.SmsNotMapped there are leases of another family, and the families aren't
   *     mapped, see {@link #mapSms}
   * @throws GcxException.InvalidValue the family has no leases; the name is too long; the minimum
   *     or the exclusive SMs exceed the requested count
   */
  public Lease acquire(LeaseRequest request) {
    return new Lease(
        Wait.forSms(
            request.timeout(), request.cancel(), token -> request.acquire(this, null, token)));
  }

  /**
   * Reserves SMs across processes without waiting, like {@link #reserve(ReservationParams)}.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the reservation, to be closed by the caller
   */
  public Reservation reserve(long smCount) {
    return reserve(ReservationParams.of(smCount));
  }

  /**
   * Reserves SMs that no other process reserves in the same folder; {@link Reservation#info}
   * returns what was reserved. Creates no context.
   *
   * <p>A request with a timeout waits behind earlier ones of all processes. Its {@link Cancel} and
   * the interruption of the thread, whose interrupted status stays set, cancel the wait.
   *
   * @param request which SMs, and how long to wait for them
   * @return the reservation, to be closed by the caller
   * @throws GcxException.AlreadyAcquired other reservations or requests have the SMs, and there is
   *     no timeout; the message names them
   * @throws GcxException.Timeout they still had the SMs, or the folder locked, after the timeout
   * @throws GcxException.Cancelled the wait was cancelled
   * @throws GcxException.UnsafeFolder the folder belongs to another user, or its mode is too open
   * @throws GcxException.CorruptFile a file that a process keeps locked is invalid
   * @throws GcxException.ResourceConfiguration the device has fewer SMs than requested
   * @throws GcxException.NotSupported the device has no max-cluster family
   * @throws GcxException.InvalidValue the family has no reservations; the name or path is too long;
   *     the path is not absolute; the minimum exceeds the requested count
   * @throws GcxException the folder does not exist or can't be written ({@link
   *     Result#OPERATING_SYSTEM})
   */
  public Reservation reserve(ReservationParams request) {
    return new Reservation(
        Wait.forSms(request.timeout(), request.cancel(), token -> request.acquire(this, token)));
  }

  /** {@return the priorities that its streams can have} */
  public StreamPriorityRange streamPriorityRange() {
    int[] range = Functions.gcx_device_get_stream_priority_range(ordinal);
    return new StreamPriorityRange(range[0], range[1]);
  }

  /**
   * Reads which SMs each atom of a family holds, through a few temporary contexts. Needed once per
   * process and family, for {@link SmResource#smIds} and overlaps across families.
   *
   * @param family coscheduled, fine or max-cluster
   */
  public void mapSms(SmFamily family) {
    Functions.gcx_device_map_sms(ordinal, family.number);
  }

  /**
   * Returns the SMs that all partitions of this process share: two on compute capability 9.x, once
   * a module with dynamic parallelism is loaded. Kernels of every partition also run there.
   *
   * <p>Returns what {@link Stream#probeSms} has found. If that is nothing, creates and probes two
   * contexts, each with the cost of a first one, and caches them. SMs that were found stay known.
   * Modules load lazily: if the list is empty, call it again after the first launch of a kernel of
   * the module.
   *
   * @return the hardware numbers, ascending; empty if none were found
   * @throws GcxException.NotSupported compute capability 9.x under MPS, where the numbers are
   *     virtual
   */
  public int[] sharedSms() {
    return Functions.gcx_device_find_shared_sms(ordinal);
  }
}

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
   * Acquires SMs without waiting, like {@link #acquire(LeaseRequest)}.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the lease, to be closed by the caller
   */
  public Lease acquire(long smCount) {
    return acquire(LeaseRequest.of(smCount));
  }

  /**
   * Acquires SMs for exclusive use within this process. The request's {@link Cancel} and the
   * interruption of the thread, whose interrupted status stays set, cancel the wait.
   *
   * @param request which SMs, and how long to wait for them
   * @return the lease, to be closed by the caller
   * @see Raw#gcx_lease_acquire
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
   * Reserves SMs that no other process reserves in the same folder. The request's {@link Cancel}
   * and the interruption of the thread, whose interrupted status stays set, cancel the wait.
   *
   * @param request which SMs, and how long to wait for them
   * @return the reservation, to be closed by the caller
   * @see Raw#gcx_reservation_acquire
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
   * Returns the SMs that all partitions of this process share, once a module with dynamic
   * parallelism is loaded.
   *
   * @return the hardware numbers, ascending; empty if none were found
   * @see Raw#gcx_device_find_shared_sms
   */
  public int[] sharedSms() {
    return Functions.gcx_device_find_shared_sms(ordinal);
  }
}

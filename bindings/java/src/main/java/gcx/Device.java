package gcx;

import java.util.ArrayList;
import java.util.List;

/**
 * A device, by CUDA's ordinal, after CUDA_VISIBLE_DEVICES.
 *
 * @param ordinal 0 for the first
 */
public record Device(int ordinal) {
  /**
   * How many devices there are.
   *
   * @return the count
   */
  public static int count() {
    return Functions.gcx_device_get_count();
  }

  /**
   * All devices.
   *
   * @return the devices
   */
  public static List<Device> all() {
    List<Device> devices = new ArrayList<>();
    for (int i = 0; i < count(); i++) {
      devices.add(new Device(i));
    }
    return List.copyOf(devices);
  }

  /**
   * What is known of it. Makes no context on it.
   *
   * @return name and counts
   * @throws GcxException.InvalidDevice there is no such device
   */
  public DeviceInfo info() {
    return Functions.gcx_device_get_info(ordinal);
  }

  /**
   * All its SMs, which can be split in any family.
   *
   * @return the SMs
   */
  public SmResource sms() {
    return new SmResource(Functions.gcx_device_get_resource(ordinal, ResourceType.SM.number));
  }

  /**
   * Its default workqueue configuration, from CUDA 13.1 on.
   *
   * @return the configuration
   * @throws GcxException.NotSupported the driver is older
   */
  public WorkqueueResource workqueue() {
    return new WorkqueueResource(
        Functions.gcx_device_get_resource(ordinal, ResourceType.WORKQUEUE_CONFIG.number));
  }

  /**
   * Acquires SMs that no other lease has, without waiting: {@link #acquire(LeaseRequest)} of a
   * count alone.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the lease, to be closed by the caller
   */
  public Lease acquire(long smCount) {
    return acquire(LeaseRequest.of(smCount));
  }

  /**
   * Acquires SMs that no other lease has. The first lease over a set of SMs makes a context of
   * them; later ones take microseconds. What it really got is in {@link Lease#info}.
   *
   * <p>A request with a timeout waits, behind those who came before. The wait is given up when the
   * thread is interrupted, whose interrupted status stays set, and by the request's {@link Cancel}.
   *
   * @param request which SMs, and how long to wait for them
   * @return the lease, to be closed by the caller
   * @throws GcxException.AlreadyAcquired others hold the SMs, or wait for them, and after the
   *     timeout still did; the message says who
   * @throws GcxException.NotPermitted the wait was given up
   * @throws GcxException.ResourceConfiguration the device has not so many SMs, whoever holds them
   * @throws GcxException.NotReady there are leases of another family, and the families aren't
   *     mapped, see {@link #mapSms}
   * @throws GcxException.InvalidValue a family that has no leases, a name that is too long; a
   *     minimum or exclusive SMs beyond those asked for
   */
  public Lease acquire(LeaseRequest request) {
    return new Lease(
        Wait.forSms(request.timeout(), request.cancel(), token -> request.acquire(this, token)));
  }

  /**
   * Takes SMs that no other process has, without waiting: {@link #reserve(ReservationParams)} of a
   * count alone.
   *
   * @param smCount SMs, at least 1, rounded up to whole atoms
   * @return the reservation, to be closed by the caller
   */
  public Reservation reserve(long smCount) {
    return reserve(ReservationParams.of(smCount));
  }

  /**
   * Takes SMs that no other process has, of those that take theirs in the same folder. Makes no
   * context. What it really got is in {@link Reservation#info}.
   *
   * <p>A request with a timeout waits, behind those who came before, in whatever process. The wait
   * is given up when the thread is interrupted, whose interrupted status stays set, and by the
   * request's {@link Cancel}.
   *
   * @param request which SMs, and how long to wait for them
   * @return the reservation, to be closed by the caller
   * @throws GcxException.AlreadyAcquired others hold the SMs, or wait for them, and after the
   *     timeout still did; the message says who
   * @throws GcxException.NotPermitted the wait was given up; the folder is another user's, or too
   *     many may enter it
   * @throws GcxException.ResourceConfiguration the device has not so many SMs, whoever holds them
   * @throws GcxException.NotSupported the max-cluster family on a device that has none
   * @throws GcxException.InvalidValue a family that has no reservations, a name or path that is too
   *     long, a path that is not absolute; a minimum beyond those asked for
   * @throws GcxException the folder isn't there or can't be written, or a file in it can't be
   *     believed ({@link Result#OPERATING_SYSTEM})
   */
  public Reservation reserve(ReservationParams request) {
    return new Reservation(
        Wait.forSms(request.timeout(), request.cancel(), token -> request.take(this, token)));
  }

  /**
   * Whether contexts of this process on it are shared by way of MPS, as the driver says. Makes no
   * context.
   *
   * @return what is known
   */
  public MpsInfo mps() {
    return Functions.gcx_mps_get_info(ordinal);
  }

  /**
   * The priorities that its streams can have.
   *
   * @return the range
   */
  public StreamPriorityRange streamPriorityRange() {
    int[] range = Functions.gcx_device_get_stream_priority_range(ordinal);
    return new StreamPriorityRange(range[0], range[1]);
  }

  /**
   * Reads which SMs each atom of a family holds, from a few contexts that are made for a moment.
   * Once a process and family; for {@link SmResource#smIds} and overlaps across families.
   *
   * @param family coscheduled, fine or max-cluster
   */
  public void mapSms(SmFamily family) {
    Functions.gcx_device_map_sms(ordinal, family.number);
  }

  /**
   * Finds the SMs that all partitions of this process share: on compute capability 9.x two, as soon
   * as a module with dynamic parallelism is loaded. Kernels of every partition also run there.
   *
   * <p>Returns what {@link Stream#probeSms} has shown; if that is nothing, makes and probes two
   * contexts, each with the cost of a first one, and keeps them. Once found, the SMs stay known.
   * Modules load lazily: while none are found, call it again after a kernel of the module was
   * launched.
   *
   * @return the hardware's numbers, ascending; empty while none are found
   * @throws GcxException.NotSupported compute capability 9.x under MPS, where the numbers are
   *     virtual
   */
  public int[] sharedSms() {
    return Functions.gcx_device_get_shared_sms(ordinal);
  }
}

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
}

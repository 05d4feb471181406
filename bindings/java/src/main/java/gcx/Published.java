package gcx;

import java.util.List;
import java.util.Objects;

/**
 * Leases that the user's other processes see, as {@code gcx top} shows them. A process publishes
 * its leases after {@link #start()}, or if the environment has GCX_PUBLISH; other processes can't
 * change them. Tested only on the simulated driver so far.
 */
public final class Published {
  private Published() {}

  /** Publishes this process's leases under the program's name, {@code java}. */
  public static void start() {
    Functions.gcx_publish_start(null);
  }

  /**
   * Publishes this process's present and later leases until the process ends. If it publishes
   * already, changes the name. Opens the driver.
   *
   * @param name for lists: up to 63 bytes of UTF-8
   * @see Raw#gcx_publish_start
   */
  public static void start(String name) {
    Functions.gcx_publish_start(Objects.requireNonNull(name, "name"));
  }

  /** Stops publishing; does nothing if this process does not publish. */
  public static void stop() {
    Functions.gcx_publish_stop();
  }

  /**
   * {@return the processes of this user that publish, each as it was at one moment} Opens no
   * driver.
   *
   * @throws GcxException.UnsafeFolder the folder belongs to another user, or its mode is too open
   */
  public static List<PublishedProcess> processes() {
    return List.of(Functions.gcx_published_process_list());
  }

  /**
   * Returns the leases of these processes. Two leases of one process have no exclusive SM in
   * common; leases of two processes may. Opens no driver.
   *
   * @return by process: first the leases in the order in which they were acquired, then the waiting
   *     requests in the order in which they are served
   * @throws GcxException.UnsafeFolder the folder belongs to another user, or its mode is too open
   */
  public static List<PublishedLease> leases() {
    return List.of(Functions.gcx_published_lease_list());
  }
}

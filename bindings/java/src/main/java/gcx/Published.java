package gcx;

import java.util.List;

/**
 * Leases that the user's other processes see, as {@code gcx top} shows them. A process publishes
 * its leases if it is told to, by this or by the environment's GCX_PUBLISH; nobody can change what
 * another has. Tested on the simulated driver alone so far.
 *
 * <p>Every method may be called from any thread, at any time.
 */
public final class Published {
  private Published() {}

  /** Publishes this process's leases under the program's name: {@code java}. */
  public static void start() {
    Functions.gcx_publish_start(null);
  }

  /**
   * Publishes this process's leases from now on, those that there are and those to come, until the
   * process ends, however it ends. Where it does already the name changes. Opens the driver.
   *
   * @param name for lists: up to 63 bytes of UTF-8
   * @throws GcxException.NotPermitted the folder is another user's, or others may enter it
   * @throws GcxException.InvalidValue the name is too long
   * @throws GcxException the file can't be made ({@link Result#OPERATING_SYSTEM})
   */
  public static void start(String name) {
    Functions.gcx_publish_start(java.util.Objects.requireNonNull(name, "name"));
  }

  /** No longer. Nothing where nothing is published. */
  public static void stop() {
    Functions.gcx_publish_stop();
  }

  /**
   * The processes of this user that publish, this one among them if it does. Opens no driver.
   *
   * @return the processes, each as it was at one moment
   * @throws GcxException.NotPermitted the folder is another user's, or others may enter it
   */
  public static List<PublishedProcess> processes() {
    return List.of(Functions.gcx_published_process_list());
  }

  /**
   * The leases of these processes. Two of one process never have an exclusive SM in common; across
   * processes there are no such promises. Opens no driver.
   *
   * @return of each process those that hold SMs in the order in which they were acquired, then
   *     those that wait, the first first
   * @throws GcxException.NotPermitted the folder is another user's, or others may enter it
   */
  public static List<PublishedLease> leases() {
    return List.of(Functions.gcx_published_lease_list());
  }
}

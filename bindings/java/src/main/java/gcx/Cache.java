package gcx;

import java.util.List;
import java.util.Objects;

/**
 * The green contexts that gcx keeps when nobody uses them, and those that it makes ahead of time.
 *
 * <p>Every method may be called from any thread, at any time. Tested on the simulated driver alone
 * so far.
 */
public final class Cache {
  private Cache() {}

  /**
   * Makes the contexts of SMs beforehand, one for each, and keeps them, so that {@link
   * Context#create} and {@link Device#acquire(LeaseRequest)} over the same SMs take microseconds.
   * Making one takes milliseconds and waits for every kernel that runs on the device: for before
   * the work starts, or for a thread that has nothing else to do. What is there already costs
   * nothing. The layouts of leases that live are made by {@link Lease#prepare}.
   *
   * <p>The interruption of the thread gives the rest up; its interrupted status stays set.
   *
   * @param resources the SMs
   * @param options what they are prepared for
   * @throws GcxException.InvalidValue there are none, or the limits are too small to keep them all
   * @throws GcxException.InvalidResourceType for leases: they are of a structured split
   * @throws GcxException.NotPermitted it was given up; what was made stays kept
   */
  public static void prepare(List<SmResource> resources, PrepareOption... options) {
    Wait.prepare(resources, PrepareOption.flags(options), null, null);
  }

  /**
   * The same, which tells how far it is.
   *
   * @param resources the SMs
   * @param progress told after each; what it throws is thrown here, and the rest is given up
   * @param options what they are prepared for
   */
  public static void prepare(
      List<SmResource> resources, Progress progress, PrepareOption... options) {
    Objects.requireNonNull(progress, "progress");
    Wait.prepare(resources, PrepareOption.flags(options), progress, null);
  }

  /**
   * The same, which another thread can give up, or the progress.
   *
   * @param resources the SMs
   * @param progress told after each, see the other; null: nobody is told
   * @param cancel gives the rest up; looked at before each
   * @param options what they are prepared for
   */
  public static void prepare(
      List<SmResource> resources, Progress progress, Cancel cancel, PrepareOption... options) {
    Objects.requireNonNull(cancel, "cancel");
    Wait.prepare(resources, PrepareOption.flags(options), progress, cancel);
  }

  /**
   * How many green contexts without context or stream are kept on each device: 64 at first. 0 keeps
   * none. Those beyond are destroyed, the longest unused first, and prepared ones only if the limit
   * is below their number; the driver gives little of their memory back, so that a limit which is
   * too small costs more than it saves.
   *
   * @param keptContexts the limit
   */
  public static void setLimit(int keptContexts) {
    Functions.gcx_cache_set_limit(count(keptContexts));
  }

  /**
   * Destroys the kept ones beyond a number now, the longest unused first, and the streams that were
   * given up of all that stay, but those at work. The limit stays as it is.
   *
   * <p>Never while a library may still name a stream that was closed, as PyTorch's allocator does.
   *
   * @param keptContexts how many are left
   * @return what was done, and what could not be
   * @throws GcxException the driver refuses to destroy something; the rest was trimmed then
   */
  public static CacheTrimmed trim(int keptContexts) {
    return Functions.gcx_cache_trim(count(keptContexts));
  }

  /**
   * The green contexts that gcx has, by number, and what they hold.
   *
   * @return the figures since the driver was opened
   */
  public static CacheStats stats() {
    return Functions.gcx_cache_get_stats();
  }

  private static int count(int contexts) {
    if (contexts < 0) {
      throw new GcxException.InvalidValue(contexts + " is no number of contexts");
    }
    return contexts;
  }
}

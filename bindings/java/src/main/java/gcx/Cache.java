package gcx;

import java.util.List;

/**
 * The cache of green contexts that are not in use, and contexts that are prepared in advance.
 *
 * <p>Tested only on the simulated driver so far.
 */
public final class Cache {
  private Cache() {}

  /**
   * Creates and caches the context of each resource, so that {@link Context#create} and {@link
   * Device#acquire(LeaseRequest)} over the same SMs take microseconds. The interruption of the
   * thread, whose interrupted status stays set, cancels the rest.
   *
   * @param resources the SMs
   * @param options what they are prepared for
   * @throws GcxException.InvalidValue there are none
   * @throws GcxException.CacheLimitExceeded the limit is too low to cache them all
   * @throws GcxException.InvalidResourceType for leases: they are of a structured split
   * @throws GcxException.Cancelled it was cancelled; contexts created so far stay cached
   */
  public static void prepare(List<SmResource> resources, PrepareOption... options) {
    Wait.prepare(resources, PrepareOption.flags(options), null, null);
  }

  /**
   * Prepares contexts, reports the progress, and lets another thread or the progress cancel it.
   *
   * @param resources the SMs
   * @param progress called after each, or null; an exception of it cancels the rest and is thrown
   *     here
   * @param cancel cancels the rest, or null; checked before each
   * @param options what they are prepared for
   */
  public static void prepare(
      List<SmResource> resources, Progress progress, Cancel cancel, PrepareOption... options) {
    Wait.prepare(resources, PrepareOption.flags(options), progress, cancel);
  }

  /**
   * Sets how many unused green contexts are cached on each device: 64 by default, 0 for none.
   *
   * @param keptContexts the limit
   */
  public static void setLimit(int keptContexts) {
    Functions.gcx_cache_set_limit(count(keptContexts));
  }

  /**
   * Destroys cached contexts beyond a number now, the least recently used first, and the closed
   * streams of the others, except those at work. The limit does not change.
   *
   * <p>Never call it while a library may still use the handle of a closed stream, as PyTorch's
   * allocator does.
   *
   * @param keptContexts how many remain
   * @return what was destroyed, and what could not be
   * @throws GcxException the driver refuses to destroy something; the rest was trimmed
   */
  public static CacheTrimmed trim(int keptContexts) {
    return Functions.gcx_cache_trim(count(keptContexts));
  }

  /** {@return the counts of green contexts since the driver was opened} */
  public static CacheStats stats() {
    return Functions.gcx_cache_get_stats();
  }

  private static int count(int contexts) {
    if (contexts < 0) {
      throw new GcxException.InvalidValue("negative number of contexts: " + contexts);
    }
    return contexts;
  }
}

package gcx;

/** Gets the progress of a call. */
@FunctionalInterface
public interface Progress {
  /**
   * Called in the thread that made the call, without a lock of gcx: it may call gcx, also to cancel
   * the call. An exception cancels the rest, and the call throws it.
   *
   * @param done how many contexts are done
   * @param count how many contexts there are
   */
  void made(int done, int count);
}

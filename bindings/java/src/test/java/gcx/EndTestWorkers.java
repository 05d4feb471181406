package gcx;

/** Threads that work until the end of the process, or until what they work with is closed. */
final class EndTestWorkers {
  private EndTestWorkers() {}

  /**
   * Starts a thread that repeats this. It ends in silence once something is closed: the JVM does
   * not wait for daemon threads, so an exception that it printed might be cut off anywhere, and
   * mingle with other threads' ones.
   */
  static void start(Runnable work) {
    Thread worker =
        new Thread(
            () -> {
              try {
                while (true) {
                  work.run();
                }
              } catch (GcxException.InvalidHandle | GcxException.ContextDestroyed closed) {
                return;
              }
            });
    worker.setDaemon(true);
    worker.start();
  }
}

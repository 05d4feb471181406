package gcx;

/** Gets the messages of the log. */
@FunctionalInterface
public interface LogReceiver {
  /**
   * Called at the end of the call that logs, in its thread, so possibly from several threads at
   * once. It may call gcx. Its exceptions go to the thread's handler of uncaught exceptions.
   *
   * @param level the severity
   * @param message the message
   */
  void log(LogLevel level, String message);
}

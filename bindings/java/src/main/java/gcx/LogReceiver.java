package gcx;

/** Is given the messages of the log. */
@FunctionalInterface
public interface LogReceiver {
  /**
   * Is called in the thread whose call has something to say, when the call is over; so from several
   * threads at once. It may call gcx. What it throws goes to the thread's handler of uncaught
   * exceptions.
   *
   * @param level how grave it is
   * @param message the message
   */
  void log(LogLevel level, String message);
}

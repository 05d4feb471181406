package gcx;

/** How grave a message of the log is. */
public enum LogLevel {
  /** No messages. */
  NONE(FunctionsConstants.GCX_LOG_NONE),
  /** Something was lost or left behind. */
  ERROR(FunctionsConstants.GCX_LOG_ERROR),
  /** It works, but likely not as meant. */
  WARNING(FunctionsConstants.GCX_LOG_WARNING),
  /** Which driver was opened, contexts made and given back. */
  INFO(FunctionsConstants.GCX_LOG_INFO),
  /** Every failed call and its message. */
  DEBUG(FunctionsConstants.GCX_LOG_DEBUG);

  /** The number in gcx.h. */
  final int number;

  LogLevel(int number) {
    this.number = number;
  }

  static LogLevel of(int number) {
    for (LogLevel value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a LogLevel that this package doesn't know: " + number);
  }
}

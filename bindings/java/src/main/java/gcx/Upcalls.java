package gcx;

import java.nio.charset.StandardCharsets;
import java.util.function.ObjIntConsumer;

/** What the library calls: creates records and exceptions, and passes on messages. */
abstract class Upcalls extends Structs {
  static byte[] bytes(String text) {
    if (text == null) {
      return null;
    }
    if (text.indexOf('\0') >= 0) {
      throw new GcxException.InvalidValue(
          "a name or path contains the character 0; C strings can't hold it");
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static GcxException error(int code, byte[] name, byte[] detail) {
    return GcxException.of(code, text(name), text(detail));
  }

  /** Wraps a receiver so that the classes of other class loaders can call it. */
  static ObjIntConsumer<byte[]> shared(LogReceiver receiver) {
    return (text, level) -> receiver.log(LogLevel.of(level), text(text));
  }

  /** The receiver may be of another class loader. */
  static void message(ObjIntConsumer<byte[]> receiver, int level, byte[] text) {
    if (WaitThread.keeps(receiver, level, text)) {
      return;
    }
    try {
      receiver.accept(text, level);
    } catch (Throwable thrown) {
      // The call that logs has succeeded, or throws another exception.
      Thread thread = Thread.currentThread();
      thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
    }
  }

  static void progress(Preparing preparing, int done, int count) {
    preparing.report(done, count);
  }
}

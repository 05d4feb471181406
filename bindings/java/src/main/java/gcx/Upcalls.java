package gcx;

import java.nio.charset.StandardCharsets;
import java.util.function.ObjIntConsumer;

/**
 * What the library calls: it makes records of structs and exceptions of results, and gives out
 * diagnostics.
 */
abstract class Upcalls extends Structs {
  static byte[] bytes(String text) {
    if (text == null) {
      return null;
    }
    if (text.indexOf('\0') >= 0) {
      throw new GcxException.InvalidValue("a name or path can't hold the character 0");
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static GcxException error(int code, byte[] name, byte[] detail) {
    return GcxException.of(code, text(name), text(detail));
  }

  /** A receiver as the classes of another class loader can call it. */
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
      // The call in which this came has succeeded, or fails with an exception of its own.
      Thread thread = Thread.currentThread();
      thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
    }
  }

  static void progress(Preparing preparing, int done, int count) {
    preparing.tell(done, count);
  }
}

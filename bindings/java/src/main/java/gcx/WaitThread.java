package gcx;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.ObjIntConsumer;

/**
 * A platform thread that waits for SMs while the virtual thread that requested them is parked. A
 * virtual thread inside the library would keep its carrier, and as many of them as there are
 * carriers would stop the thread that has the SMs.
 *
 * <p>Each wait has its own thread, since queueing for one would change the order of the requests.
 * Idle threads end after a second, so that they don't keep the class loader.
 */
final class WaitThread extends Thread {
  private Task task;

  private WaitThread(Runnable work) {
    super(null, work, "gcx-wait", 0, false);
    setDaemon(true);
    setContextClassLoader(null);
  }

  /** Initialized by the first virtual thread that waits. */
  private static final class Pool {
    static final ExecutorService THREADS =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), WaitThread::new);
  }

  private record Message(ObjIntConsumer<byte[]> receiver, int level, byte[] text) {}

  /** One call and its outcome. */
  private static final class Task implements Runnable {
    private final LongSupplier call;
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final List<Message> messages = new ArrayList<>();
    private long given;
    private Throwable thrown;

    Task(LongSupplier call) {
      this.call = call;
    }

    @Override
    public void run() {
      WaitThread thread = (WaitThread) Thread.currentThread();
      thread.task = this;
      try {
        given = call.getAsLong();
      } catch (Throwable problem) {
        thrown = problem;
      } finally {
        thread.task = null;
        ended.complete(null);
      }
    }
  }

  /**
   * Makes the call in another thread and waits for its end, also if this thread is interrupted,
   * whose interrupted status stays set. Messages and exceptions come in this thread.
   */
  static long call(LongSupplier call) {
    Task task = new Task(call);
    Pool.THREADS.execute(task);
    task.ended.join();
    for (Message message : task.messages) {
      Upcalls.message(message.receiver(), message.level(), message.text());
    }
    if (task.thrown == null) {
      return task.given;
    }
    task.thrown.fillInStackTrace();
    if (task.thrown instanceof Error error) {
      throw error;
    }
    throw (RuntimeException) task.thrown;
  }

  /** Keeps a message for the virtual thread if this thread makes a call for one. */
  static boolean keeps(ObjIntConsumer<byte[]> receiver, int level, byte[] text) {
    if (!(Thread.currentThread() instanceof WaitThread thread) || thread.task == null) {
      return false;
    }
    thread.task.messages.add(new Message(receiver, level, text));
    return true;
  }
}

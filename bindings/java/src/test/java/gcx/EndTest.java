package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ends of a process whose objects are alive and used by threads. */
class EndTest {
  private static final List<AutoCloseable> OBJECTS = new ArrayList<>();

  /**
   * Starts a thread that repeats the work until something that it uses is closed. It then ends
   * silently: the JVM does not wait for daemon threads and could cut off what they print.
   */
  private static void repeat(Runnable work) {
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

  private static void end(String manner) {
    switch (manner) {
      case "exit" -> System.exit(0);
      case "halt" -> Runtime.getRuntime().halt(0);
      case "hook" -> Runtime.getRuntime().addShutdownHook(new Thread(EndTest::closeAll));
      default -> OBJECTS.clear();
    }
  }

  private static void closeAll() {
    for (AutoCloseable object : OBJECTS) {
      try {
        object.close();
      } catch (Exception problem) {
        System.out.println(problem);
      }
    }
  }

  /** Ends while threads use streams of contexts. */
  static final class Contexts {
    public static void main(String[] arguments) throws InterruptedException {
      Split split = new Device(0).sms().split(24, 32);
      CountDownLatch busy = new CountDownLatch(4);
      for (int i = 0; i < 4; i++) {
        Context context = Context.create(split.groups().get(i % 2));
        Stream stream = context.createStream();
        OBJECTS.addAll(List.of(context, stream, Event.create(new Device(0))));
        repeat(
            () -> {
              stream.probeSms();
              stream.synchronize();
              busy.countDown();
            });
      }
      busy.await();
      System.out.println("live " + Context.live().size());
      end(arguments[0]);
    }
  }

  /** Ends while leases change and another thread waits for SMs. */
  static final class Leases {
    public static void main(String[] arguments) throws InterruptedException {
      Device device = new Device(0);
      CountDownLatch busy = new CountDownLatch(2);
      Lease one = device.acquire(64);
      Lease other = device.acquire(LeaseRequest.rest());
      OBJECTS.addAll(List.of(one, other));
      AtomicInteger changes = new AtomicInteger();
      // All SMs stay in use, so that the request below never succeeds.
      repeat(
          () -> {
            int count = changes.getAndIncrement() % 2 == 0 ? 24 : 64;
            Lease.resize(List.of(new LeaseSize(one, count), LeaseSize.rest(other)));
          });
      for (Stream stream : List.of(one.stream(), other.stream())) {
        repeat(
            () -> {
              stream.probeSms();
              busy.countDown();
            });
      }
      repeat(() -> device.acquire(LeaseRequest.of(8).withTimeout(LeaseRequest.FOREVER)));
      busy.await();
      while (Lease.live().size() != 3) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      System.out.println("live 3");
      end(arguments[0]);
    }
  }

  /** Ends while graphs are launched and contexts are prepared. */
  static final class Graphs {
    public static void main(String[] arguments) throws InterruptedException {
      Device device = new Device(0);
      CountDownLatch busy = new CountDownLatch(3);
      long captured = Work.captured(8);
      Graph graph = Graph.create(captured);
      Work.destroy(captured);
      Lease lease = device.acquire(64);
      Context context = Context.create(device.sms().split(64, 24).groups().get(1));
      OBJECTS.addAll(List.of(graph, lease, context));
      for (Stream stream : List.of(lease.stream(), context.createStream())) {
        OBJECTS.add(stream);
        repeat(
            () -> {
              graph.launch(stream);
              stream.synchronize();
              busy.countDown();
            });
      }
      List<SmResource> parts = device.sms().split(24, 32, 40).groups();
      repeat(
          () -> {
            Cache.trim(0);
            Cache.prepare(parts, (done, count) -> busy.countDown(), null);
          });
      busy.await();
      System.out.println("launches");
      end(arguments[0]);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit", "halt", "hook", "return"})
  void objectsAliveProcessEndsQuietly(String manner) throws Exception {
    Map<Class<?>, String> programs =
        Map.of(Contexts.class, "live 2", Leases.class, "live 3", Graphs.class, "launches");
    for (Map.Entry<Class<?>, String> program : programs.entrySet()) {
      String name = program.getKey().getName();
      assertEquals(List.of(program.getValue()), Child.of(name).runWith(manner), name);
    }
  }
}

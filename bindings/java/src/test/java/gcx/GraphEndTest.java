package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A process that ends while graphs are launched and contexts are made ahead of time. */
class GraphEndTest {
  private static final List<AutoCloseable> KEPT = new ArrayList<>();

  /** Ends in the way that it is given. */
  static final class Program {
    public static void main(String[] arguments) throws InterruptedException {
      Device device = new Device(0);
      CountDownLatch busy = new CountDownLatch(3);
      long captured = Work.captured(8);
      Graph graph = Graph.create(captured);
      Work.destroy(captured);
      Lease lease = device.acquire(64);
      Context context = Context.create(device.sms().split(64, 24).groups().get(1));
      KEPT.addAll(List.of(graph, lease, context));
      for (Stream stream : List.of(lease.stream(), context.createStream())) {
        KEPT.add(stream);
        EndTestWorkers.start(
            () -> {
              graph.launch(stream);
              stream.synchronize();
              busy.countDown();
            });
      }
      List<SmResource> parts = device.sms().split(24, 32, 40).groups();
      EndTestWorkers.start(
          () -> {
            Cache.trim(0);
            Cache.prepare(parts, (done, count) -> busy.countDown());
          });
      busy.await();
      System.out.println("launches");
      switch (arguments[0]) {
        case "exit" -> System.exit(0);
        case "halt" -> Runtime.getRuntime().halt(0);
        case "hook" -> Runtime.getRuntime().addShutdownHook(new Thread(Program::closeAll));
        default -> KEPT.clear();
      }
    }

    private static void closeAll() {
      for (AutoCloseable object : KEPT) {
        try {
          object.close();
        } catch (Exception problem) {
          System.out.println(problem);
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit", "halt", "hook", "return"})
  void theProcessEndsQuietly(String manner) throws Exception {
    assertEquals(List.of("launches"), Child.of(Program.class.getName()).runWith(manner));
  }
}

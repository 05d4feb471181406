package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A process that ends while leases live, change, and are waited for. */
class LeaseEndTest {
  private static final List<Lease> KEPT = new ArrayList<>();

  /** Ends in the way that it is given. */
  static final class Program {
    public static void main(String[] arguments) throws InterruptedException {
      Device device = new Device(0);
      CountDownLatch busy = new CountDownLatch(2);
      KEPT.add(device.acquire(64));
      KEPT.add(device.acquire(LeaseRequest.rest()));
      start(() -> exchange(KEPT.get(0), KEPT.get(1)));
      for (Lease lease : List.copyOf(KEPT)) {
        start(() -> work(lease.stream(), busy));
      }
      start(() -> device.acquire(LeaseRequest.of(8).withTimeout(LeaseRequest.FOREVER)));
      busy.await();
      while (Lease.live().size() != 3) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      System.out.println("live 3");
      switch (arguments[0]) {
        case "exit" -> System.exit(0);
        case "halt" -> Runtime.getRuntime().halt(0);
        case "hook" ->
            Runtime.getRuntime().addShutdownHook(new Thread(() -> KEPT.forEach(Lease::close)));
        default -> KEPT.clear();
      }
    }

    private static void start(Runnable work) {
      Thread worker = new Thread(work);
      worker.setDaemon(true);
      worker.start();
    }

    /** Nothing becomes free, so that who waits goes on waiting. */
    private static void exchange(Lease one, Lease other) {
      for (int i = 0; true; i++) {
        Lease.resize(List.of(LeaseSize.of(one, i % 2 == 0 ? 24 : 64), LeaseSize.rest(other)));
      }
    }

    private static void work(Stream stream, CountDownLatch busy) {
      while (true) {
        stream.probeSms();
        busy.countDown();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit", "halt", "hook", "return"})
  void theProcessEndsQuietly(String manner) throws Exception {
    List<String> lines = Child.of(Program.class.getName()).runWith(manner);
    assertEquals("live 3", lines.get(0));
    for (String line : lines.subList(1, lines.size())) {
      // A worker whose lease is closed below it says so.
      boolean closed = line.contains("InvalidHandle") || line.contains("ContextDestroyed");
      assertTrue(closed || line.startsWith("\tat "), line);
    }
  }
}

package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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
      Lease one = KEPT.get(0);
      Lease other = KEPT.get(1);
      AtomicInteger changes = new AtomicInteger();
      EndTestWorkers.start(() -> exchange(one, other, changes.getAndIncrement()));
      for (Lease lease : List.copyOf(KEPT)) {
        Stream stream = lease.stream();
        EndTestWorkers.start(() -> work(stream, busy));
      }
      EndTestWorkers.start(
          () -> device.acquire(LeaseRequest.of(8).withTimeout(LeaseRequest.FOREVER)));
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

    /** Nothing becomes free, so that the request that waits goes on waiting. */
    private static void exchange(Lease one, Lease other, int change) {
      Lease.resize(List.of(LeaseSize.of(one, change % 2 == 0 ? 24 : 64), LeaseSize.rest(other)));
    }

    private static void work(Stream stream, CountDownLatch busy) {
      stream.probeSms();
      busy.countDown();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit", "halt", "hook", "return"})
  void theProcessEndsQuietly(String manner) throws Exception {
    assertEquals(List.of("live 3"), Child.of(Program.class.getName()).runWith(manner));
  }
}

package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Virtual threads that wait for SMs: they leave their carriers to others. */
@Timeout(60)
class VirtualThreadsTest {
  private final Device device = new Device(0);
  private ExecutorService pool;

  @TempDir Path folder;

  @BeforeEach
  void needsVirtualThreads() {
    assumeTrue(Runtime.version().feature() >= 21, "Java has virtual threads from 21 on");
    pool = virtualThreads();
  }

  @AfterEach
  void nothingIsAlive() throws InterruptedException {
    if (pool != null) {
      pool.shutdownNow();
      assertTrue(pool.awaitTermination(20, TimeUnit.SECONDS));
    }
    LeaseTest.eventuallyNoLeaseIsAlive();
  }

  /** By reflection, since this is compiled for Java 17. */
  private static ExecutorService virtualThreads() {
    try {
      return (ExecutorService)
          Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException older) {
      throw new AssertionError(older);
    }
  }

  /**
   * One virtual thread has all SMs and sleeps, others wait for some; there is one carrier. Prints
   * "stuck" if they have not all come to an end after 20 seconds.
   */
  static final class Program {
    private static final int WAITS = 4;

    public static void main(String[] arguments) throws Exception {
      Device device = new Device(0);
      Reservation reservation =
          arguments[0].equals("lease-of-reservation")
              ? device.reserve(ReservationParams.rest())
              : null;
      ExecutorService pool = virtualThreads();
      CountDownLatch held = new CountDownLatch(1);
      CountDownLatch served = new CountDownLatch(WAITS);
      pool.submit(
          () -> {
            Owned all = taken(device, reservation, arguments[0], Duration.ZERO);
            held.countDown();
            TimeUnit.MILLISECONDS.sleep(300);
            System.out.println("released");
            all.close();
            return null;
          });
      held.await();
      for (int i = 0; i < WAITS; i++) {
        pool.submit(
            () -> {
              taken(device, reservation, arguments[0], Duration.ofSeconds(1000)).close();
              served.countDown();
              return null;
            });
      }
      System.out.println(served.await(20, TimeUnit.SECONDS) ? "served" : "stuck");
      Runtime.getRuntime().halt(0); // stuck threads would keep the process
    }

    /** All SMs without a wait, or 8 with one. */
    private static Owned taken(Device device, Reservation reservation, String what, Duration wait) {
      if (what.equals("reservation")) {
        ReservationParams request =
            wait.isZero() ? ReservationParams.rest() : ReservationParams.of(8);
        return device.reserve(request.withTimeout(wait));
      }
      LeaseRequest request = wait.isZero() ? LeaseRequest.rest() : LeaseRequest.of(8);
      request = request.withTimeout(wait);
      return reservation == null ? device.acquire(request) : reservation.acquire(request);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"lease", "reservation", "lease-of-reservation"})
  void wait_oneCarrier_leavesItToTheHolder(String what) throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    Child child =
        Child.of(
            Program.class.getName(),
            "-Djdk.virtualThreadScheduler.parallelism=1",
            "-Djdk.virtualThreadScheduler.maxPoolSize=1");
    child.environment().put("GCX_RESERVATION_DIR", folder.toString());
    assertEquals(List.of("released", "served"), child.runWith(what));
  }

  private static void untilListed(int count) throws InterruptedException {
    while (Lease.live().size() != count) {
      TimeUnit.MILLISECONDS.sleep(1);
    }
  }

  private static LeaseRequest waiting(long smCount) {
    return LeaseRequest.of(smCount).withTimeout(LeaseRequest.FOREVER);
  }

  @Test
  void wait_severalThreads_areServedInOrderOfArrival() throws Exception {
    try (Lease held = device.acquire(100)) {
      Future<Lease> large = pool.submit(() -> device.acquire(waiting(64)));
      untilListed(2);
      Future<Lease> small = pool.submit(() -> device.acquire(waiting(8)));
      untilListed(3);
      TimeUnit.MILLISECONDS.sleep(50);
      assertFalse(large.isDone() || small.isDone()); // 28 SMs are free, but the large one is first
      held.resize(68);
      try (Lease first = large.get()) {
        assertEquals(64, first.smCount());
        assertFalse(small.isDone());
      }
      small.get().close();
    }
  }

  @Test
  void wait_timeout_throwsInTheCallersThread() throws Exception {
    LeaseRequest request = LeaseRequest.of(8).withTimeout(Duration.ofMillis(30));
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      long start = System.nanoTime();
      Callable<GcxException> wait =
          () ->
              refused(
                  GcxException.AlreadyAcquired.class,
                  "timed out after 30 ms",
                  () -> device.acquire(request));
      GcxException thrown = pool.submit(wait).get();
      assertTrue(System.nanoTime() - start >= 30_000_000);
      assertTrue(
          Arrays.stream(thrown.getStackTrace())
              .anyMatch(frame -> frame.getClassName().equals(VirtualThreadsTest.class.getName())),
          Arrays.toString(thrown.getStackTrace()));
      assertEquals(132, held.smCount());
    }
  }

  @Test
  void wait_cancelOrInterruption_endsIt() throws Exception {
    Cancel cancel = new Cancel();
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Future<Boolean> cancelled =
          pool.submit(() -> isRefused(waiting(8).withCancel(cancel), "by Cancel.signal"));
      Thread[] waits = new Thread[1];
      Future<Boolean> interrupted =
          pool.submit(
              () -> {
                waits[0] = Thread.currentThread();
                return isRefused(waiting(8), "by Thread.interrupt");
              });
      untilListed(3);
      cancel.signal();
      assertFalse(cancelled.get());
      waits[0].interrupt();
      assertTrue(interrupted.get());
      untilListed(1);
      assertEquals(132, held.smCount());
    }
  }

  /** Whether the thread is interrupted afterwards. */
  private boolean isRefused(LeaseRequest request, String reason) {
    refused(GcxException.NotPermitted.class, reason, () -> device.acquire(request));
    return Thread.currentThread().isInterrupted();
  }

  @Test
  void wait_messages_comeInTheCallersThread() throws Exception {
    LeaseRequest request = LeaseRequest.of(8).withTimeout(Duration.ofMillis(1));
    Set<Thread> seen = Collections.synchronizedSet(new HashSet<>());
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Gcx.setLog(LogLevel.DEBUG, (level, text) -> seen.add(Thread.currentThread()));
      Thread waited =
          pool.submit(
                  () -> {
                    refused(
                        GcxException.AlreadyAcquired.class,
                        "timed out",
                        () -> device.acquire(request));
                    return Thread.currentThread();
                  })
              .get();
      assertEquals(Set.of(waited), seen);
      assertEquals(132, held.smCount());
    } finally {
      Gcx.setLog(LogLevel.NONE, null);
    }
  }
}

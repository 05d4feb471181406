package gcx;

import static gcx.Support.awaitLeases;
import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Waits for SMs, in platform and in virtual threads: how they end, and what the thread sees. */
@Timeout(60)
@SuppressWarnings("try") // some leases only occupy SMs
class WaitTest {
  private static final String BY_INTERRUPT = "cancelled by Thread.interrupt";
  private static final String BY_CANCEL = "cancelled by Cancel.signal";

  @TempDir Path folder;
  private final Device device = new Device(0);
  private ExecutorService pool;

  @BeforeEach
  void makeFolderPrivate() throws Exception {
    Support.makePrivate(folder);
  }

  @AfterEach
  void awaitNothingAlive() throws InterruptedException {
    if (pool != null) {
      pool.shutdownNow();
      assertTrue(pool.awaitTermination(20, TimeUnit.SECONDS));
    }
    Support.awaitNothingAlive();
    Support.awaitReservations(folder, 0);
  }

  private void usePool(String threads) {
    boolean virtual = threads.equals("virtual");
    assumeTrue(!virtual || Support.hasVirtualThreads(), "Java has virtual threads from 21 on");
    pool = virtual ? Support.virtualThreads() : Executors.newCachedThreadPool();
  }

  private static LeaseRequest waiting(long smCount) {
    return LeaseRequest.of(smCount).withTimeout(LeaseRequest.FOREVER);
  }

  /** Acquires a lease or a reservation; count 0 acquires all SMs. */
  private Owned acquire(String what, long count, Duration timeout, Cancel cancel) {
    long smCount = count == 0 ? SmRequest.REST : count;
    return what.equals("lease")
        ? device.acquire(LeaseRequest.of(smCount).withTimeout(timeout).withCancel(cancel))
        : device.reserve(
            ReservationParams.of(smCount)
                .withFolder(folder)
                .withTimeout(timeout)
                .withCancel(cancel));
  }

  private void awaitListed(String what, int count) throws InterruptedException {
    if (what.equals("lease")) {
      awaitLeases(count);
    } else {
      Support.awaitReservations(folder, count);
    }
  }

  /** The error of a wait, and whether its thread was interrupted then. */
  private record Outcome(GcxException error, boolean interrupted) {}

  private Future<Outcome> submitWait(String what, Thread[] thread, Cancel cancel) {
    return pool.submit(
        () -> {
          thread[0] = Thread.currentThread();
          GcxException error =
              refused(
                  GcxException.Cancelled.class,
                  "cancelled",
                  () -> acquire(what, 8, LeaseRequest.FOREVER, cancel).close());
          return new Outcome(error, Thread.interrupted());
        });
  }

  @ParameterizedTest
  @CsvSource({"platform, lease", "platform, reservation", "virtual, lease", "virtual, reservation"})
  void waitTimedOutThrowsInCallersThread(String threads, String what) throws Exception {
    usePool(threads);
    try (Owned all = acquire(what, 0, Duration.ZERO, null)) {
      long start = System.nanoTime();
      GcxException error =
          pool.submit(
                  () ->
                      refused(
                          GcxException.Timeout.class,
                          "timed out after 30 ms",
                          () -> acquire(what, 8, Duration.ofMillis(30), null)))
              .get();
      assertTrue(System.nanoTime() - start >= 30_000_000);
      assertTrue(
          Arrays.stream(error.getStackTrace())
              .anyMatch(frame -> frame.getClassName().equals(WaitTest.class.getName())),
          Arrays.toString(error.getStackTrace()));
    }
  }

  @ParameterizedTest
  @CsvSource({"platform, lease", "platform, reservation", "virtual, lease", "virtual, reservation"})
  void waitInterruptedThrowsAndKeepsStatus(String threads, String what) throws Exception {
    usePool(threads);
    try (Owned all = acquire(what, 0, Duration.ZERO, null)) {
      for (Cancel cancel : new Cancel[] {null, new Cancel()}) {
        Thread[] thread = new Thread[1];
        Future<Outcome> wait = submitWait(what, thread, cancel);
        awaitListed(what, 2);
        thread[0].interrupt();
        assertTrue(wait.get().error().getMessage().contains(BY_INTERRUPT));
        assertTrue(wait.get().interrupted());
        awaitListed(what, 1);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"platform, lease", "platform, reservation", "virtual, lease", "virtual, reservation"})
  void cancelSignalledEndsItsWaitsPermanently(String threads, String what) throws Exception {
    usePool(threads);
    Cancel cancel = new Cancel();
    Cancel other = new Cancel();
    Thread[] thread = new Thread[1];
    try (Owned all = acquire(what, 0, Duration.ZERO, null)) {
      Future<Outcome> first = submitWait(what, thread, cancel);
      Future<Outcome> second = submitWait(what, thread, cancel);
      Future<Owned> third = pool.submit(() -> acquire(what, 24, LeaseRequest.FOREVER, other));
      awaitListed(what, 4);
      assertEquals("cancel", cancel.toString());
      cancel.signal();
      cancel.signal();
      for (Future<Outcome> wait : List.of(first, second)) {
        assertTrue(wait.get().error().getMessage().contains(BY_CANCEL));
        assertFalse(wait.get().interrupted());
      }
      assertTrue(cancel.isSignalled() && !other.isSignalled());
      assertEquals("cancel, signalled", cancel.toString());
      for (Duration timeout : List.of(Duration.ZERO, LeaseRequest.FOREVER)) {
        refused(
            GcxException.Cancelled.class,
            BY_CANCEL,
            () -> acquire(what, 8, timeout, cancel).close());
      }
      awaitListed(what, 2);
      all.close();
      Owned served = third.get();
      other.signal(); // has no effect on what was acquired
      assertTrue(served.isOpen());
      served.close();
    }
  }

  @Test
  void threadInterruptedBeforeWaitThrowsAtOnce() {
    try (Lease most = device.acquire(100)) {
      Thread.currentThread().interrupt();
      refused(GcxException.Cancelled.class, BY_INTERRUPT, () -> device.acquire(waiting(64)));
      assertTrue(Thread.currentThread().isInterrupted());
      // Calls that don't wait ignore the interruption.
      device.acquire(8).close();
      LeaseRequest atOnce = LeaseRequest.of(64).withCancel(new Cancel());
      refused(GcxException.AlreadyAcquired.class, "", () -> device.acquire(atOnce));
      most.resize(24);
      assertTrue(Thread.interrupted());
    }
  }

  @Test
  void waitIsListedWithItsEnd() throws Exception {
    usePool("platform");
    try (Owned all = acquire("reservation", 0, Duration.ZERO, null)) {
      Future<Owned> timed = pool.submit(() -> acquire("reservation", 8, Duration.ofDays(1), null));
      Support.awaitReservations(folder, 2);
      LiveReservation wait = Reservation.live(folder).get(1);
      assertTrue(wait.waits() && wait.atoms().isEmpty());
      assertEquals(OptionalInt.of(8), wait.smCount());
      assertTrue(wait.until().orElseThrow().isAfter(Instant.now()));
      all.close();
      timed.get().close();
    }
    try (Lease all = device.acquire(LeaseRequest.rest())) {
      Future<Lease> rest =
          pool.submit(() -> device.acquire(LeaseRequest.rest().withTimeout(LeaseRequest.FOREVER)));
      awaitLeases(2);
      assertEquals(OptionalInt.empty(), Lease.live().get(1).smCount());
      all.close();
      rest.get().close();
    }
  }

  /** Release, interruption and signal race with each other. */
  @Test
  void waitWithSeveralEndsHasOneOutcome() throws Exception {
    usePool("platform");
    int served = 0;
    for (int i = 0; i < 200; i++) {
      Cancel cancel = new Cancel();
      Lease all = device.acquire(LeaseRequest.rest());
      Thread[] thread = new Thread[1];
      Future<Boolean> wait =
          pool.submit(
              () -> {
                thread[0] = Thread.currentThread();
                try (Lease lease = device.acquire(waiting(8).withCancel(cancel))) {
                  return lease.smCount() == 8;
                } catch (GcxException.Cancelled cancelled) {
                  return false;
                } finally {
                  Thread.interrupted();
                }
              });
      awaitLeases(2);
      Future<?> release = pool.submit(i % 3 == 0 ? all::close : () -> all.resize(24));
      Future<?> signal = pool.submit(i % 3 == 1 ? cancel::signal : () -> {});
      if (i % 3 == 2) {
        thread[0].interrupt();
      }
      served += wait.get() ? 1 : 0;
      release.get();
      signal.get();
      all.close();
      assertEquals(List.of(), Lease.live());
    }
    assertTrue(served >= 67, "only " + served + " were served"); // all that were not disturbed
  }

  @Test
  void logMessagesOfVirtualThreadsWaitComeInThatThread() throws Exception {
    usePool("virtual");
    LeaseRequest request = LeaseRequest.of(8).withTimeout(Duration.ofMillis(1));
    Set<Thread> seen = Collections.synchronizedSet(new HashSet<>());
    try (Lease all = device.acquire(LeaseRequest.rest())) {
      Gcx.setLog(LogLevel.DEBUG, (level, text) -> seen.add(Thread.currentThread()));
      Thread waited =
          pool.submit(
                  () -> {
                    refused(GcxException.class, "timed out", () -> device.acquire(request));
                    return Thread.currentThread();
                  })
              .get();
      assertEquals(Set.of(waited), seen);
    } finally {
      Gcx.setLog(LogLevel.NONE, null);
    }
  }

  /**
   * One virtual thread has all SMs and sleeps, others wait for some; there is one carrier. Prints
   * "stuck" if they have not all ended after 20 seconds.
   */
  static final class OneCarrier {
    private static final int WAITS = 4;

    public static void main(String[] arguments) throws Exception {
      Device device = new Device(0);
      String what = arguments[0];
      Reservation reservation =
          what.equals("lease-of-reservation") ? device.reserve(ReservationParams.rest()) : null;
      ExecutorService pool = Support.virtualThreads();
      CountDownLatch acquired = new CountDownLatch(1);
      CountDownLatch served = new CountDownLatch(WAITS);
      pool.submit(
          () -> {
            Owned all = acquire(device, reservation, what, Duration.ZERO);
            acquired.countDown();
            TimeUnit.MILLISECONDS.sleep(300);
            System.out.println("released");
            all.close();
            return null;
          });
      acquired.await();
      for (int i = 0; i < WAITS; i++) {
        pool.submit(
            () -> {
              acquire(device, reservation, what, Duration.ofSeconds(1000)).close();
              served.countDown();
              return null;
            });
      }
      System.out.println(served.await(20, TimeUnit.SECONDS) ? "served" : "stuck");
      Runtime.getRuntime().halt(0); // stuck threads would keep the process alive
    }

    /** Acquires all SMs without a wait, or 8 with one. */
    private static Owned acquire(
        Device device, Reservation reservation, String what, Duration wait) {
      long count = wait.isZero() ? SmRequest.REST : 8;
      if (what.equals("reservation")) {
        return device.reserve(ReservationParams.of(count).withTimeout(wait));
      }
      LeaseRequest request = LeaseRequest.of(count).withTimeout(wait);
      return reservation == null ? device.acquire(request) : reservation.acquire(request);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"lease", "reservation", "lease-of-reservation"})
  void waitOfVirtualThreadReleasesItsCarrier(String what) throws Exception {
    usePool("virtual");
    Child child =
        Child.of(
            OneCarrier.class.getName(),
            "-Djdk.virtualThreadScheduler.parallelism=1",
            "-Djdk.virtualThreadScheduler.maxPoolSize=1");
    child.environment().put("GCX_RESERVATION_DIR", folder.toString());
    assertEquals(List.of("released", "served"), child.runWith(what));
  }
}

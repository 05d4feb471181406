package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The contexts that are kept, those made ahead of time, and what of a kernel fits. */
@Timeout(60)
@SuppressWarnings("try") // some are closed in the middle, and are closed again
class CacheTest {
  private final Device device = new Device(0);
  private final List<SmResource> parts = device.sms().split(24, 32, 40).groups();

  @BeforeEach
  void nothingIsKept() throws InterruptedException {
    LifetimeTest.eventuallyNothingIsAlive();
    CacheTrimmed trimmed = Cache.trim(0);
    assertEquals(0, trimmed.contextsLeft(), trimmed.toString());
    assertEquals(0, Cache.stats().kept());
  }

  @AfterEach
  void theLimitsAreAsTheyWere() {
    Cache.setLimit(64);
    assertFalse(Thread.interrupted());
  }

  @Test
  void whatWasMadeAheadIsThere() {
    CacheStats before = Cache.stats();
    List<String> told = new ArrayList<>();
    Cache.prepare(
        parts,
        (done, count) -> {
          told.add(done + " of " + count);
          assertEquals(before.kept() + done, Cache.stats().kept()); // it may call gcx
        });
    assertEquals(List.of("1 of 3", "2 of 3", "3 of 3"), told);
    CacheStats after = Cache.stats();
    assertEquals(before.prepared() + 3, after.prepared());
    assertEquals(before.misses() + 3, after.misses());
    assertEquals(3, after.kept());
    assertTrue(after.making().compareTo(before.making()) > 0);
    assertTrue(after.making().compareTo(after.longestMaking()) >= 0);
    assertTrue(after.longestMaking().compareTo(Duration.ZERO) > 0);
    try (Context context = Context.create(parts.get(0))) {
      assertEquals(after.misses(), Cache.stats().misses());
    }
    Cache.prepare(parts);
    assertEquals(after.misses(), Cache.stats().misses());
  }

  @Test
  void whatTheProgressThrowsGivesTheRestUp() {
    CacheStats before = Cache.stats();
    Error thrown = new Error("no more");
    Cancel cancel = new Cancel();
    Progress progress =
        (done, count) -> {
          if (done == 2) {
            throw thrown;
          }
        };
    assertSame(thrown, assertThrows(Error.class, () -> Cache.prepare(parts, progress, cancel)));
    assertEquals(before.misses() + 2, Cache.stats().misses());
    assertFalse(cancel.isSignalled());
    assertSame(
        thrown, assertThrows(Error.class, () -> Cache.prepare(parts.subList(0, 2), progress)));
    Cache.prepare(parts); // nothing is left of it
  }

  @Test
  void whatTheProgressDoesNotCatchIsThrown() {
    assertThrows(
        StackOverflowError.class, () -> Cache.prepare(parts, (done, count) -> deeper(done)));
    GcxException other =
        assertThrows(
            GcxException.InvalidDevice.class,
            () -> Cache.prepare(parts, (done, count) -> new Device(7).sms()));
    assertTrue(other.getMessage().startsWith("Device.sms"), other.getMessage());
    Cache.prepare(parts, (done, count) -> Cache.prepare(parts, (inner, all) -> {}));
  }

  private static int deeper(int depth) {
    return deeper(depth + 1) + 1;
  }

  @Test
  void aCancelGivesTheRestUp() {
    Cancel cancel = new Cancel();
    long misses = Cache.stats().misses();
    refused(
        GcxException.NotPermitted.class,
        "Cache.prepare: cancelled by Cancel.signal after 1 of 3",
        () -> Cache.prepare(parts, (done, count) -> cancel.signal(), cancel));
    assertEquals(misses + 1, Cache.stats().misses());
    refused(
        GcxException.NotPermitted.class,
        "after 0 of 3",
        () -> Cache.prepare(parts, null, cancel, PrepareOption.FOR_LEASES));
    assertEquals(misses + 1, Cache.stats().misses());
  }

  @Test
  void anInterruptionGivesTheRestUpAndIsKept() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch interrupted = new CountDownLatch(1);
    AtomicReference<Throwable> outcome = new AtomicReference<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                Cache.prepare(
                    parts,
                    (done, count) -> {
                      begun.countDown();
                      while (!Thread.currentThread().isInterrupted()) {
                        Thread.onSpinWait();
                      }
                    });
              } catch (Throwable problem) {
                outcome.set(Thread.interrupted() ? problem : null);
              }
              interrupted.countDown();
            });
    thread.start();
    begun.await();
    thread.interrupt();
    interrupted.await();
    assertEquals(GcxException.NotPermitted.class, outcome.get().getClass());
    assertTrue(outcome.get().getMessage().contains("cancelled by Thread.interrupt after 1 of 3"));
    // A wait inside the progress takes the thread's one place for who is interrupted.
    Thread.currentThread().interrupt();
    refused(GcxException.NotPermitted.class, "after 0 of 3", () -> Cache.prepare(parts));
    assertTrue(Thread.interrupted());
    Progress waits =
        (done, count) -> {
          device.acquire(LeaseRequest.of(8).withTimeout(Duration.ofMillis(1))).close();
          Thread.currentThread().interrupt();
        };
    refused(GcxException.NotPermitted.class, "after 1 of 3", () -> Cache.prepare(parts, waits));
    assertTrue(Thread.interrupted());
  }

  @Test
  void whatIsWrongIsRefused() {
    refused(GcxException.InvalidValue.class, "Cache.prepare", () -> Cache.prepare(List.of()));
    assertThrows(NullPointerException.class, () -> Cache.prepare(null, (done, count) -> {}));
    assertThrows(NullPointerException.class, () -> Cache.prepare(parts, (Progress) null));
    assertThrows(NullPointerException.class, () -> Cache.prepare(parts, null, (Cancel) null));
    Cache.setLimit(2);
    refused(
        GcxException.InvalidValue.class,
        "raise the limit with Cache.setLimit",
        () -> Cache.prepare(parts));
    assertEquals(0, Cache.stats().kept());
    assertThrows(GcxException.InvalidValue.class, () -> Cache.setLimit(-1));
    assertThrows(GcxException.InvalidValue.class, () -> Cache.trim(-1));
  }

  @Test
  void aTrimDestroysWhatIsKeptAndSays() {
    for (SmResource part : parts) {
      try (Context context = Context.create(part)) {
        context.createStream().close();
      }
    }
    CacheStats before = Cache.stats();
    assertEquals(3, before.kept());
    assertEquals(3, before.keptStreams());
    CacheTrimmed trimmed = Cache.trim(1);
    assertEquals(new CacheTrimmed(2, 3, 0, 0, trimmed.bytes()), trimmed);
    assertTrue(trimmed.bytes() >= 0);
    assertEquals(1, Cache.stats().kept());
    assertEquals(0, Cache.stats().keptStreams());
    assertEquals(before.evicted() + 2, Cache.stats().evicted());
    assertEquals(64, Cache.stats().limit());
  }

  @Test
  void aKernelsFitIsTold() {
    long kernel = Work.kernel();
    try (Context context = Context.create(parts.get(0));
        Stream stream = context.createStream();
        Lease lease = device.acquire(64)) {
      KernelFit fit = stream.kernelFit(kernel, 1024, 0);
      assertEquals(24, fit.smCount());
      assertTrue(fit.blocksPerSm() > 0);
      assertEquals(24 * fit.blocksPerSm(), fit.maxBlocks());
      assertEquals(0, fit.maxClusters());
      KernelFit clusters = stream.kernelFit(kernel, 1024, 0, 4);
      assertTrue(clusters.maxClusters() > 0);
      assertEquals(4 * clusters.maxClusters(), clusters.maxBlocks());
      assertEquals(64, lease.stream().kernelFit(kernel, 256, 1024).smCount());
      lease.resize(32);
      assertEquals(32, lease.stream().kernelFit(kernel, 256, 1024).smCount());
      for (int threads : new int[] {0, -1, 1025}) {
        refused(
            GcxException.InvalidValue.class,
            "Stream.kernelFit: blockThreads is ",
            () -> stream.kernelFit(kernel, threads, 0));
      }
      refused(
          GcxException.InvalidValue.class, "Stream.kernelFit", () -> stream.kernelFit(0, 32, 0));
      refused(
          GcxException.InvalidValue.class,
          "-1 is no number of bytes",
          () -> stream.kernelFit(kernel, 32, -1));
      stream.close();
      refused(GcxException.InvalidHandle.class, "", () -> stream.kernelFit(kernel, 32, 0));
    }
  }
}

package gcx;

import static gcx.Support.refused;
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

/** The cache of contexts: its records, and what a progress callback may do. */
@Timeout(60)
class CacheTest {
  private final Device device = new Device(0);
  private final List<SmResource> parts = device.sms().split(24, 32, 40).groups();

  @BeforeEach
  void emptyCache() throws InterruptedException {
    Support.awaitNothingAlive();
    CacheTrimmed trimmed = Cache.trim(0);
    assertEquals(0, trimmed.contextsLeft(), trimmed.toString());
  }

  @AfterEach
  void resetLimit() {
    Cache.setLimit(64);
    assertFalse(Thread.interrupted());
  }

  @Test
  void prepareReportsProgressAndTimes() {
    CacheStats before = Cache.stats();
    List<String> reported = new ArrayList<>();
    Cache.prepare(
        parts,
        (done, count) -> {
          reported.add(done + " of " + count);
          assertEquals(before.cached() + done, Cache.stats().cached()); // it may call gcx
        },
        null);
    assertEquals(List.of("1 of 3", "2 of 3", "3 of 3"), reported);
    CacheStats after = Cache.stats();
    assertEquals(before.prepared() + 3, after.prepared());
    assertTrue(after.creation().compareTo(before.creation()) > 0);
    assertTrue(after.creation().compareTo(after.longestCreation()) >= 0);
    assertTrue(after.longestCreation().compareTo(Duration.ZERO) > 0);
    CacheTrimmed trimmed = Cache.trim(1);
    assertEquals(new CacheTrimmed(2, 0, 0, 0, trimmed.bytes()), trimmed);
    assertTrue(trimmed.bytes() >= 0);
    Cache.prepare(parts, (done, count) -> Cache.prepare(parts, (inner, all) -> {}, null), null);
  }

  @Test
  void progressThatThrowsEndsThePreparation() {
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
        thrown,
        assertThrows(Error.class, () -> Cache.prepare(parts.subList(0, 2), progress, null)));
    assertThrows(
        StackOverflowError.class, () -> Cache.prepare(parts, (done, count) -> deeper(done), null));
    refused(
        GcxException.InvalidDevice.class,
        "Device.sms",
        () -> Cache.prepare(parts, (done, count) -> new Device(7).sms(), null));
    Cache.prepare(parts); // no exception is pending
  }

  private static int deeper(int depth) {
    return deeper(depth + 1) + 1;
  }

  @Test
  void cancelSignalledEndsThePreparation() {
    Cancel cancel = new Cancel();
    refused(
        GcxException.Cancelled.class,
        "Cache.prepare: cancelled by Cancel.signal after 1 of 3",
        () -> Cache.prepare(parts, (done, count) -> cancel.signal(), cancel));
    refused(
        GcxException.Cancelled.class,
        "after 0 of 3",
        () -> Cache.prepare(parts, null, cancel, PrepareOption.FOR_LEASES));
  }

  @Test
  void threadInterruptedEndsThePreparationAndKeepsStatus() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
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
                    },
                    null);
              } catch (Throwable problem) {
                outcome.set(Thread.interrupted() ? problem : null);
              }
            });
    thread.start();
    begun.await();
    thread.interrupt();
    thread.join();
    assertEquals(GcxException.Cancelled.class, outcome.get().getClass());
    assertTrue(outcome.get().getMessage().contains("cancelled by Thread.interrupt after 1 of 3"));
    Thread.currentThread().interrupt();
    refused(GcxException.Cancelled.class, "after 0 of 3", () -> Cache.prepare(parts));
    assertTrue(Thread.interrupted());
    // A wait inside the progress replaces the one channel that an interruption of the thread
    // closes.
    Progress waits =
        (done, count) -> {
          device.acquire(LeaseRequest.of(8).withTimeout(Duration.ofMillis(1))).close();
          Thread.currentThread().interrupt();
        };
    refused(GcxException.Cancelled.class, "after 1 of 3", () -> Cache.prepare(parts, waits, null));
    assertTrue(Thread.interrupted());
  }

  @Test
  void valuesThatJavaCannotPassAreRefused() {
    refused(GcxException.InvalidValue.class, "Cache.prepare", () -> Cache.prepare(List.of()));
    assertThrows(NullPointerException.class, () -> Cache.prepare(null));
    assertThrows(GcxException.InvalidValue.class, () -> Cache.setLimit(-1));
    assertThrows(GcxException.InvalidValue.class, () -> Cache.trim(-1));
    Cache.setLimit(2);
    refused(
        GcxException.CacheLimitExceeded.class,
        "raise the limit with Cache.setLimit",
        () -> Cache.prepare(parts));
  }
}

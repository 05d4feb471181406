package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that wait: in which order they are served, and how they are given up. */
@Timeout(60)
class LeaseWaitTest {
  private static final String BY_INTERRUPTION = "was cancelled by Thread.interrupt";
  private static final String BY_CANCEL = "was cancelled by Cancel.signal";

  private final Device device = new Device(0);
  private final ExecutorService pool = Executors.newCachedThreadPool();

  @AfterEach
  void nothingIsAlive() throws InterruptedException {
    pool.shutdownNow();
    assertTrue(pool.awaitTermination(20, TimeUnit.SECONDS));
    LeaseTest.eventuallyNoLeaseIsAlive();
  }

  private static LeaseRequest waiting(long smCount) {
    return LeaseRequest.of(smCount).withTimeout(LeaseRequest.FOREVER);
  }

  private static void untilListed(int count) throws InterruptedException {
    while (Lease.live().size() != count) {
      TimeUnit.MILLISECONDS.sleep(1);
    }
  }

  @Test
  void waitForTheRestIsListedWithoutCount() throws Exception {
    LeaseRequest rest = LeaseRequest.rest().withTimeout(LeaseRequest.FOREVER);
    Future<Lease> waiting;
    try (Lease held = device.acquire(rest)) {
      waiting = pool.submit(() -> device.acquire(rest));
      untilListed(2);
      assertEquals(OptionalInt.of(held.smCount()), Lease.live().get(0).smCount());
      assertEquals(OptionalInt.empty(), Lease.live().get(1).smCount());
      assertTrue(Lease.live().get(1).waits());
    }
    waiting.get().close();
  }

  @Test
  void aWaitEndsInTime() {
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      long start = System.nanoTime();
      refused(
          GcxException.AlreadyAcquired.class,
          "timed out after 30 ms",
          () -> device.acquire(LeaseRequest.of(8).withTimeout(Duration.ofMillis(30))));
      assertTrue(System.nanoTime() - start >= 30_000_000);
      assertEquals(132, held.smCount());
    }
  }

  /** What a thread saw that was given up by this. */
  private record Outcome(GcxException error, boolean interrupted) {}

  private Callable<Outcome> refusal(LeaseRequest request) {
    return () -> {
      GcxException error =
          Assertions.assertThrows(
              GcxException.NotPermitted.class, () -> device.acquire(request).close());
      return new Outcome(error, Thread.interrupted());
    };
  }

  @Test
  void interruptionGivesTheWaitUpAndIsKept() throws Exception {
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      for (LeaseRequest request : List.of(waiting(8), waiting(8).withCancel(new Cancel()))) {
        Thread[] waits = new Thread[1];
        Future<Outcome> given =
            pool.submit(
                () -> {
                  waits[0] = Thread.currentThread();
                  return refusal(request).call();
                });
        untilListed(2);
        waits[0].interrupt();
        Outcome outcome = given.get();
        assertTrue(outcome.interrupted());
        assertTrue(outcome.error().getMessage().contains(BY_INTERRUPTION));
        assertEquals(Result.NOT_PERMITTED, outcome.error().result());
        assertEquals(1, Lease.live().size());
        assertEquals(132, held.smCount());
      }
    }
  }

  @Test
  void virtualThreadsAreInterruptedToo() throws Exception {
    assumeTrue(Runtime.version().feature() >= 21, "Java has virtual threads from 21 on");
    CompletableFuture<Outcome> outcome = new CompletableFuture<>();
    Runnable wait =
        () -> {
          try {
            outcome.complete(refusal(waiting(8)).call());
          } catch (Throwable other) {
            outcome.completeExceptionally(other);
          }
        };
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Thread waits =
          (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, wait);
      untilListed(2);
      waits.interrupt();
      assertTrue(outcome.get().interrupted());
      assertTrue(outcome.get().error().getMessage().contains(BY_INTERRUPTION));
      assertEquals(132, held.smCount());
    }
  }

  @Test
  void whoIsInterruptedAlreadyDoesNotWait() {
    try (Lease held = device.acquire(LeaseRequest.of(100))) {
      Thread.currentThread().interrupt();
      refused(GcxException.NotPermitted.class, BY_INTERRUPTION, () -> device.acquire(waiting(64)));
      assertTrue(Thread.currentThread().isInterrupted());
      // What doesn't wait isn't given up.
      device.acquire(8).close();
      LeaseRequest deferred = LeaseRequest.of(64).withCancel(new Cancel());
      refused(GcxException.AlreadyAcquired.class, "", () -> device.acquire(deferred));
      held.resize(24);
      assertTrue(Thread.interrupted());
    }
  }

  @Test
  void futuresAreCancelledByInterruption() throws Exception {
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Future<Lease> waits = pool.submit(() -> device.acquire(waiting(8)));
      untilListed(2);
      assertTrue(waits.cancel(true));
      Assertions.assertThrows(CancellationException.class, waits::get);
      untilListed(1);
      assertEquals(132, held.smCount());
    }
  }

  @Test
  void oneCancelGivesUpAllThatWaitWithItForGood() throws Exception {
    Cancel cancel = new Cancel();
    Cancel other = new Cancel();
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Future<Outcome> first = pool.submit(refusal(waiting(8).withCancel(cancel)));
      Future<Outcome> second = pool.submit(refusal(waiting(16).withCancel(cancel)));
      Future<Lease> third = pool.submit(() -> device.acquire(waiting(24).withCancel(other)));
      untilListed(4);
      assertEquals("cancel", cancel.toString());
      cancel.signal();
      cancel.signal();
      for (Future<Outcome> given : List.of(first, second)) {
        assertTrue(given.get().error().getMessage().contains(BY_CANCEL));
        assertFalse(given.get().interrupted());
      }
      assertTrue(cancel.isSignalled());
      assertFalse(other.isSignalled());
      assertEquals("cancel, signalled", cancel.toString());
      for (Duration timeout : List.of(Duration.ZERO, LeaseRequest.FOREVER)) {
        LeaseRequest late = LeaseRequest.of(8).withCancel(cancel).withTimeout(timeout);
        refused(GcxException.NotPermitted.class, BY_CANCEL, () -> device.acquire(late));
      }
      assertEquals(2, Lease.live().size());
      held.resize(100);
      try (Lease served = third.get()) {
        assertEquals(24, served.smCount());
        other.signal(); // gives up no lease
        assertEquals(24, served.stream().probeSms().length);
      }
    }
  }

  /** The SMs, an interruption and a signal come at once. */
  @Test
  void whicheverComesFirst() throws Exception {
    int served = 0;
    for (int i = 0; i < 200; i++) {
      Cancel cancel = new Cancel();
      Lease held = device.acquire(LeaseRequest.rest());
      Thread[] waits = new Thread[1];
      Future<Boolean> waiting =
          pool.submit(
              () -> {
                waits[0] = Thread.currentThread();
                try (Lease lease = device.acquire(waiting(8).withCancel(cancel))) {
                  return lease.smCount() == 8;
                } catch (GcxException.NotPermitted givenUp) {
                  return false;
                } finally {
                  Thread.interrupted();
                }
              });
      untilListed(2);
      Future<?> gives = pool.submit(i % 3 == 0 ? held::close : () -> held.resize(24));
      Future<?> signals = pool.submit(i % 3 == 1 ? cancel::signal : () -> {});
      if (i % 3 == 2) {
        waits[0].interrupt();
      }
      served += waiting.get() ? 1 : 0;
      gives.get();
      signals.get();
      held.close();
      assertEquals(List.of(), Lease.live());
    }
    assertTrue(served >= 67, "only " + served + " were served"); // all that nobody disturbed
  }

  @Test
  void whoWaitsHoldsNobodyElseUp() throws Exception {
    try (Lease held = device.acquire(LeaseRequest.rest())) {
      Future<Lease> waits = pool.submit(() -> device.acquire(waiting(8)));
      untilListed(2);
      System.gc(); // a thread inside a call stops no collection
      assertEquals(132, held.stream().probeSms().length);
      try (Lease elsewhere = new Device(1).acquire(24)) {
        assertEquals(24, elsewhere.stream().probeSms().length);
      }
      held.resize(24);
      waits.get().close();
    }
  }
}

package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;

/** Threads that know nothing of each other take SMs, change how many, and never meet on one. */
class LeaseThreadsTest {
  private static final int THREADS = 6;
  private static final int MOST_SMS = 1024;
  private static final LeaseRequest REQUEST =
      LeaseRequest.of(16).withMinimum(8).withTimeout(Duration.ofSeconds(20));

  private final Device device = new Device(0);

  /** Who is on an SM, by the hardware's number of it; 0: nobody. */
  private final AtomicIntegerArray claims = new AtomicIntegerArray(MOST_SMS);

  @Test
  void noTwoThreadsAreOnOneSm() throws Exception {
    String seconds = System.getenv().getOrDefault("GCX_LOAD_SECONDS", "2");
    Instant end = Instant.now().plus(Duration.ofSeconds(Long.parseLong(seconds)));
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    List<Future<Integer>> working = new ArrayList<>();
    for (int i = 1; i <= THREADS; i++) {
      int who = i;
      working.add(pool.submit(() -> work(who, end)));
    }
    while (!working.stream().allMatch(Future::isDone)) {
      System.gc(); // somebody may wait for SMs that nobody refers to
      TimeUnit.MILLISECONDS.sleep(50);
    }
    int changes = 0;
    for (Future<Integer> worker : working) {
      try {
        changes += worker.get();
      } catch (ExecutionException problem) {
        throw new AssertionError("a thread saw what it should never see", problem.getCause());
      }
    }
    pool.shutdown();
    assertTrue(changes > THREADS, "only " + changes + " changes");
    LeaseTest.eventuallyNoLeaseIsAlive();
  }

  private int work(int who, Instant end) {
    SplittableRandom random = new SplittableRandom(who);
    int changes = 0;
    do {
      Lease lease = device.acquire(REQUEST);
      Stream stream = random.nextBoolean() ? lease.stream() : lease.createStream();
      for (int i = 0; i < 4; i++) {
        onItsSms(who, lease, stream);
        try {
          lease.resize(8L * (1 + random.nextInt(5)));
          changes++;
        } catch (GcxException.AlreadyAcquired busy) {
          continue; // others have the SMs, or wait for them
        }
      }
      if (random.nextInt(4) != 0) {
        lease.close();
      }
    } while (Instant.now().isBefore(end));
    return changes;
  }

  private void onItsSms(int who, Lease lease, Stream stream) {
    int[] ids = stream.probeSms();
    assertEquals(lease.smCount(), ids.length);
    for (int id : ids) {
      assertEquals(0, claims.compareAndExchange(id, 0, who), "SM " + id + " is another's");
    }
    for (int id : ids) {
      claims.set(id, 0);
    }
  }

  /** One thread changes the lease and ends it, others use its streams all the while. */
  @Test
  void streamsAreUsedWhileTheirLeaseChanges() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    Lease lease = device.acquire(24);
    Stream shared = lease.createStream();
    List<Future<Integer>> working = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      working.add(pool.submit(() -> use(lease, shared)));
    }
    for (int i = 0; i < 40; i++) {
      lease.resize(i % 2 == 0 ? 64 : 24);
      Thread.yield();
    }
    lease.close();
    int uses = 0;
    for (Future<Integer> worker : working) {
      uses += worker.get();
    }
    pool.shutdown();
    assertTrue(uses > 0, "nobody has used the streams");
    shared.close();
    LeaseTest.eventuallyNoLeaseIsAlive();
  }

  private static int use(Lease lease, Stream shared) {
    int uses = 0;
    try (Event event = Event.create(new Device(0))) {
      while (true) {
        assertTrue(shared.nativeHandle() != 0);
        int seen = shared.probeSms().length;
        assertTrue(seen == 24 || seen == 64, seen + " SMs");
        shared.record(event);
        event.synchronize();
        lease.stream().waitFor(event);
        lease.synchronize();
        uses++;
      }
    } catch (GcxException.InvalidHandle | GcxException.ContextDestroyed ended) {
      return uses;
    }
  }
}

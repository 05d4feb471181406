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
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.ToIntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Many threads that use the same objects while others close them or leave them to the collector.
 */
@Timeout(300)
class ThreadsTest {
  private static final int THREADS = 6;
  private static final int SLOTS = 6;

  private final Device device = new Device(0);
  private final List<SmResource> groups = device.sms().split(24, 32, 40).groups();
  private final AtomicReferenceArray<Context> contexts = new AtomicReferenceArray<>(SLOTS);
  private final AtomicReferenceArray<Stream> streams = new AtomicReferenceArray<>(SLOTS);
  private final AtomicReferenceArray<Event> events = new AtomicReferenceArray<>(SLOTS);

  @AfterEach
  void awaitNothingAlive() throws InterruptedException {
    Support.awaitNothingAlive();
  }

  private static Instant end() {
    String seconds = System.getenv().getOrDefault("GCX_LOAD_SECONDS", "2");
    return Instant.now().plus(Duration.ofSeconds(Long.parseLong(seconds)));
  }

  /**
   * Runs the work in several threads, each with its number, and the further work in this thread.
   * Returns the sum of the results.
   */
  private static int inThreads(ToIntFunction<Integer> work, Runnable further) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    List<Future<Integer>> working = new ArrayList<>();
    for (int i = 1; i <= THREADS; i++) {
      int number = i;
      working.add(pool.submit(() -> work.applyAsInt(number)));
    }
    further.run();
    int sum = 0;
    for (Future<Integer> worker : working) {
      while (!worker.isDone()) {
        System.gc(); // closes unreachable leases, whose SMs another thread may wait for
        TimeUnit.MILLISECONDS.sleep(50);
      }
      try {
        sum += worker.get();
      } catch (ExecutionException problem) {
        throw new AssertionError("a thread failed", problem.getCause());
      }
    }
    pool.shutdown();
    return sum;
  }

  @Test
  void objectsClosedByOtherThreadsThrowInvalidHandle() throws Exception {
    for (int slot = 0; slot < SLOTS; slot++) {
      replace(slot, slot);
    }
    Instant end = end();
    int calls = inThreads(number -> callUntil(end, new SplittableRandom(number)), () -> {});
    assertTrue(calls > 1000, "only " + calls + " calls");
    for (int slot = 0; slot < SLOTS; slot++) {
      contexts.set(slot, null);
      streams.set(slot, null);
      events.set(slot, null);
    }
  }

  private int callUntil(Instant end, SplittableRandom random) {
    int calls = 0;
    for (; calls % 64 != 0 || Instant.now().isBefore(end); calls++) {
      try {
        step(random);
      } catch (GcxException.InvalidHandle closedByAnotherThread) {
        continue;
      }
    }
    return calls;
  }

  private void replace(int slot, int group) {
    Context context = Context.create(groups.get(group % groups.size()));
    streams.set(slot, context.createStream(-group));
    contexts.set(slot, context);
    events.set(slot, Event.create(device));
  }

  private void step(SplittableRandom random) {
    int slot = random.nextInt(SLOTS);
    Stream stream = streams.get(random.nextInt(SLOTS));
    Context context = contexts.get(slot);
    Event event = events.get(random.nextInt(SLOTS));
    switch (random.nextInt(16)) {
      case 0 -> replace(slot, random.nextInt(SLOTS));
      case 1 -> stream.close();
      case 2 -> context.close();
      case 3 -> event.close();
      case 4 -> assertTrue(stream.probeSms().length >= 24);
      case 5 -> stream.synchronize();
      case 6 -> context.synchronize();
      case 7 -> stream.record(event);
      case 8 -> context.waitFor(event);
      case 9 -> event.isDone();
      case 10 -> assertTrue(context.sms().smCount() >= 24);
      case 11 -> assertEquals(0, stream.info().device());
      case 12 -> Context.live().forEach(live -> assertTrue(live.smCount() >= 24));
      case 13 -> groups.get(0).plan(8, 8);
      case 14 -> {
        Context.Pushed pushed = context.push();
        try {
          assertTrue(Context.current().isPresent() || context.isClosed());
        } finally {
          pushed.close();
        }
      }
      default -> {
        try (Stream further = context.createStream()) {
          further.waitFor(stream);
        }
      }
    }
    if (random.nextInt(2000) == 0) {
      System.gc();
    }
  }

  /** One thread resizes the lease, changes the graph and closes both; the others use them. */
  @Test
  void streamsAndGraphsAreUsedDuringChanges() throws Exception {
    Lease lease = device.acquire(24);
    Stream shared = lease.createStream();
    long captured = Work.captured(8);
    Graph graph = Graph.create(captured);
    Work.destroy(captured);
    int uses =
        inThreads(
            number -> use(lease, shared, graph),
            () -> {
              for (int i = 0; i < 40; i++) {
                lease.resize(i % 2 == 0 ? 64 : 24);
                graph.setKernel(0, Dim.of(1 + i % 7), Dim.of(Work.BLOCK), 0, Work.arguments(3));
              }
              long before = graph.info().launches();
              while (graph.info().launches() < before + THREADS) {
                Thread.onSpinWait();
              }
              graph.close();
              lease.close();
            });
    assertTrue(uses > 0, "no thread has used the streams");
    assertTrue(Work.blocks(3) > 0);
    shared.close();
    // Creating a context waits for the work that was submitted last: nothing else does.
    Context.createPrivate(device.sms()).close();
  }

  private int use(Lease lease, Stream shared, Graph graph) {
    int uses = 0;
    try (Event event = Event.create(device)) {
      while (true) {
        assertTrue(shared.nativeHandle() != 0);
        int seen = shared.probeSms().length;
        assertTrue(seen == 24 || seen == 64, seen + " SMs");
        graph.launch(uses % 2 == 0 ? shared : lease.stream());
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

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
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Test;

/** Many threads on the same objects: for a few seconds, or as many as GCX_LOAD_SECONDS says. */
class ThreadsTest {
  private static final int THREADS = 8;
  private static final int PLACES = 6;

  private final List<SmResource> groups = new Device(0).sms().split(24, 32, 40).groups();
  private final AtomicReferenceArray<Context> contexts = new AtomicReferenceArray<>(PLACES);
  private final AtomicReferenceArray<Stream> streams = new AtomicReferenceArray<>(PLACES);
  private final AtomicReferenceArray<Event> events = new AtomicReferenceArray<>(PLACES);

  @Test
  void eachCallSucceedsOrSaysThatTheObjectIsClosed() throws Exception {
    String seconds = System.getenv().getOrDefault("GCX_LOAD_SECONDS", "3");
    Instant end = Instant.now().plus(Duration.ofSeconds(Long.parseLong(seconds)));
    for (int place = 0; place < PLACES; place++) {
      replace(place, place);
    }
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    List<Future<Long>> working = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      int seed = i;
      working.add(pool.submit(() -> work(new SplittableRandom(seed), end)));
    }
    long calls = 0;
    for (Future<Long> worker : working) {
      calls += result(worker);
    }
    pool.shutdown();
    assertTrue(calls > 1000, "only " + calls + " calls");
    for (int place = 0; place < PLACES; place++) {
      contexts.set(place, null);
      streams.set(place, null);
      events.set(place, null);
    }
    LifetimeTest.eventuallyNothingIsAlive();
  }

  private static long result(Future<Long> worker) throws InterruptedException {
    try {
      return worker.get();
    } catch (ExecutionException problem) {
      throw new AssertionError("a thread ended with what it should never see", problem.getCause());
    }
  }

  private long work(SplittableRandom random, Instant end) {
    long calls = 0;
    for (; calls % 64 != 0 || Instant.now().isBefore(end); calls++) {
      try {
        step(random);
      } catch (GcxException.InvalidHandle closed) {
        continue; // by another thread, meanwhile
      }
    }
    return calls;
  }

  /** What is replaced is sometimes closed, and sometimes left to the collector. */
  private void replace(int place, int group) {
    Context context = Context.create(groups.get(group % groups.size()));
    streams.set(place, context.createStream(-group));
    contexts.set(place, context);
    events.set(place, Event.create(new Device(0)));
  }

  private void step(SplittableRandom random) {
    int place = random.nextInt(PLACES);
    Stream stream = streams.get(random.nextInt(PLACES));
    Context context = contexts.get(place);
    Event event = events.get(random.nextInt(PLACES));
    switch (random.nextInt(16)) {
      case 0 -> replace(place, random.nextInt(PLACES));
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
        try (Stream own = context.createStream()) {
          own.waitFor(stream);
        }
      }
    }
    if (random.nextInt(2000) == 0) {
      System.gc();
    }
  }
}

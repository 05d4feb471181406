package gcx;

import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Contexts, streams, events, leases and graphs: how they are closed, and by whom. */
@Timeout(60)
class LifetimeTest {
  private final Device device = new Device(0);
  private final SmResource part = Support.part(24);

  @BeforeEach
  @AfterEach
  void awaitNothingAlive() throws InterruptedException {
    Support.awaitNothingAlive();
  }

  @Test
  void recordsHoldTheContextsFields() {
    try (Context context = Context.create(part);
        Stream stream = context.createStream(-9)) {
      long id = context.info().id();
      assertEquals(new StreamInfo(0, -5, 24, id), stream.info());
      assertEquals(
          new LiveContext(id, 0, 24, 1, 1, false, context.info().nativeId(), part),
          Context.live(device).get(0));
      assertEquals(List.of(), Context.live(new Device(1)));
      assertEquals(List.of(part, part), List.of(stream.sms(), context.sms()));
      assertEquals(24, Arrays.stream(stream.probeSms()).distinct().count());
      for (long handle :
          new long[] {stream.nativeHandle(), context.nativeHandle(), context.nativeGreenHandle()}) {
        assertNotEquals(0, handle);
      }
    }
  }

  @Test
  void objectsClosedCannotBeUsed() {
    Context context = Context.create(part);
    Stream stream = context.createStream();
    Event event = Event.create(device);
    Lease lease = device.acquire(24);
    long captured = Work.captured(1);
    Graph graph = Graph.create(captured);
    Work.destroy(captured);
    List<Owned> objects = List.of(context, stream, event, lease, graph);
    assertEquals("[context, stream, event, lease, graph]", objects.toString());
    context.close();
    assertEquals(24, stream.probeSms().length); // a stream keeps its context
    for (int i = 0; i < 3; i++) {
      objects.forEach(Owned::close);
    }
    for (Owned object : objects) {
      assertTrue(object.isClosed());
      assertTrue(object.toString().endsWith(", closed"), object.toString());
    }
    for (Executable use :
        List.<Executable>of(
            context::info,
            context::createStream,
            context::nativeHandle,
            context::nativeGreenHandle,
            context::push,
            context::synchronize,
            context::sms,
            () -> context.record(event),
            () -> context.waitFor(event),
            stream::info,
            stream::nativeHandle,
            stream::probeSms,
            stream::isDone,
            stream::synchronize,
            () -> stream.record(event),
            () -> stream.waitFor(event),
            () -> stream.waitFor(stream),
            event::synchronize,
            event::isDone,
            event::nativeHandle,
            () -> event.millisecondsSince(event),
            lease::info,
            lease::sms,
            lease::stream,
            lease::createStream,
            lease::synchronize,
            lease::isDone,
            () -> lease.resize(32),
            () -> Lease.prepare(List.of(LeaseSize.rest(lease))),
            graph::info,
            graph::nodes,
            () -> graph.launch(stream))) {
      refused(GcxException.InvalidHandle.class, " is closed", use);
    }
  }

  @Test
  void nullsAndInvalidHandlesAreRefused() {
    assertThrows(NullPointerException.class, () -> Context.create((Resource) null));
    assertThrows(GcxException.InvalidValue.class, () -> Context.create());
    assertThrows(GcxException.InvalidValue.class, () -> Stream.fromNative(0));
    assertThrows(GcxException.InvalidValue.class, () -> Event.fromNative(0));
  }

  @Test
  void contextsPushedAreCurrentInOrder() {
    try (Context context = Context.create(part);
        Context other = Context.create(device.sms())) {
      assertEquals(Optional.empty(), Context.current());
      try (Context.Pushed outer = context.push()) {
        assertEquals(Optional.of(context), Context.current());
        assertThrows(GcxException.ContextInUse.class, context::close);
        assertFalse(context.isClosed());
        Context.Pushed inner = other.push();
        assertEquals(Optional.of(other), Context.current());
        assertThrows(GcxException.InvalidContext.class, outer::close);
        CompletionException elsewhere =
            assertThrows(
                CompletionException.class, () -> CompletableFuture.runAsync(inner::close).join());
        assertEquals(GcxException.InvalidContext.class, elsewhere.getCause().getClass());
        inner.close();
        inner.close();
        assertEquals(Optional.of(context), Context.current());
      }
      assertEquals(Optional.empty(), Context.current());
    }
  }

  @Test
  void contextPushedInVirtualThreadIsRefused() throws InterruptedException {
    if (!Support.hasVirtualThreads()) {
      return;
    }
    ExecutorService pool = Support.virtualThreads();
    try (Context context = Context.create(part)) {
      ExecutionException error =
          assertThrows(ExecutionException.class, () -> pool.submit(context::push).get());
      assertEquals(GcxException.NotPermitted.class, error.getCause().getClass());
    }
    pool.shutdown();
  }

  @Test
  void objectsUnreachableAreClosedInAnyOrder() throws InterruptedException {
    for (int unreachable = 0; unreachable < 3; unreachable++) {
      List<AutoCloseable> objects = objects();
      objects.set(unreachable, null);
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
      for (AutoCloseable left : objects) {
        if (left instanceof Stream stream) {
          assertEquals(24, stream.probeSms().length);
        }
        if (left instanceof Context context) {
          assertEquals(24, context.smCount());
        }
      }
    }
    for (int i = 0; i < 4; i++) {
      assertEquals(24, device.acquire(24).stream().probeSms().length);
    }
    for (int i = 0; i < 20; i++) {
      long captured = Work.captured(8);
      Graph graph = Graph.create(captured);
      Work.destroy(captured);
      graph.launch(Context.create(part).createStream());
    }
    Support.awaitNothingAlive();
    assertTrue(Work.blocks(0) > 0);
    Cache.trim(64); // closed streams, of which a context keeps a limited number
  }

  private List<AutoCloseable> objects() {
    Context context = Context.create(part);
    return Arrays.asList(context, context.createStream(), Event.create(device));
  }

  @Test
  void streamReachableKeepsItsLease() throws InterruptedException {
    Stream stream = device.acquire(24).createStream();
    for (int i = 0; i < 3; i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
      assertEquals(24, stream.probeSms().length);
    }
    assertEquals(24, stream.lease().orElseThrow().smCount());
  }
}

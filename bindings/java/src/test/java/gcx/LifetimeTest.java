package gcx;

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
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Contexts, streams and events: what they do, how they live and end. */
@Timeout(60)
class LifetimeTest {
  private final Device device = new Device(0);
  private final SmResource part = device.sms().split(24).groups().get(0);

  @BeforeEach
  @AfterEach
  void nothingIsAlive() throws InterruptedException {
    eventuallyNothingIsAlive();
  }

  /** The collector and the cleaner need a moment. */
  static void eventuallyNothingIsAlive() throws InterruptedException {
    for (int i = 0; i < 200 && !Context.live().isEmpty(); i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(20);
    }
    assertEquals(List.of(), Context.live());
  }

  @Test
  void streamsRunOnTheirPart() {
    try (Context context = Context.create(part);
        Stream stream = context.createStream(-9)) {
      assertEquals(new StreamInfo(0, -5, 24, context.info().id()), stream.info());
      assertEquals(24, stream.smCount());
      assertEquals(part, stream.sms());
      assertEquals(part, context.sms());
      assertEquals(24, context.smCount());
      assertEquals(8, stream.maxClusterSize());
      assertNotEquals(0, stream.nativeHandle());
      assertNotEquals(0, context.nativeHandle());
      assertNotEquals(0, context.nativeGreenHandle());
      stream.synchronize();
      context.synchronize();
      assertTrue(stream.isDone());
      int[] seen = stream.probeSms();
      assertEquals(24, seen.length);
      assertEquals(24, Arrays.stream(seen).distinct().count());
      LiveContext live = Context.live(device).get(0);
      assertEquals(new LiveContext(context.info().id(), 0, 24, 1, 1, false, part), live);
      assertEquals(24, part.liveOverlap());
      assertEquals(List.of(), Context.live(new Device(1)));
    }
  }

  @Test
  void closingTwiceIsNothingAndUsingAfterwardsAnError() {
    Context context = Context.create(part);
    Stream stream = context.createStream();
    Event event = Event.create(device);
    context.close();
    assertEquals(24, stream.probeSms().length); // it keeps its context
    assertThrows(GcxException.InvalidHandle.class, context::createStream);
    stream.close();
    event.close();
    for (AutoCloseable closed : List.of(context, stream, event)) {
      for (int i = 0; i < 3; i++) {
        assertEquals(null, problemOf(closed));
      }
    }
    assertTrue(context.isClosed() && stream.isClosed() && event.isClosed());
    assertEquals("stream, closed", stream.toString());
    GcxException error = assertThrows(GcxException.InvalidHandle.class, stream::synchronize);
    assertTrue(error.getMessage().startsWith("the Stream is closed"), error.getMessage());
    for (Runnable use :
        List.<Runnable>of(
            stream::info,
            stream::nativeHandle,
            stream::probeSms,
            stream::isDone,
            stream::sms,
            stream::maxClusterSize,
            () -> stream.record(event),
            () -> stream.waitFor(event),
            () -> stream.waitFor(stream),
            context::info,
            context::nativeHandle,
            context::nativeGreenHandle,
            context::push,
            context::synchronize,
            context::sms,
            () -> context.record(event),
            () -> context.waitFor(event),
            event::synchronize,
            event::isDone,
            event::nativeHandle,
            () -> event.millisecondsSince(event))) {
      assertThrows(GcxException.InvalidHandle.class, use::run);
    }
  }

  private static Exception problemOf(AutoCloseable closed) {
    try {
      closed.close();
      return null;
    } catch (Exception problem) {
      return problem;
    }
  }

  @Test
  void wrongResourcesAreRefused() {
    assertThrows(GcxException.InvalidValue.class, () -> Context.create());
    assertThrows(GcxException.ResourceConfiguration.class, () -> Context.create(part, part));
    assertThrows(
        GcxException.ResourceConfiguration.class, () -> Context.create(part, new Device(1).sms()));
    assertThrows(NullPointerException.class, () -> Context.create((Resource) null));
    assertThrows(GcxException.InvalidValue.class, () -> Stream.fromNative(0));
    assertThrows(GcxException.InvalidValue.class, () -> Stream.fromNative(2));
    assertThrows(GcxException.InvalidValue.class, () -> Event.fromNative(0));
  }

  @Test
  void contextsAreMadeCurrent() {
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
        assertInvalidElsewhere(inner);
        inner.close();
        inner.close();
        assertEquals(Optional.of(context), Context.current());
      }
      assertEquals(Optional.empty(), Context.current());
    }
  }

  private static void assertInvalidElsewhere(Context.Pushed pushed) {
    CompletionException error =
        assertThrows(
            CompletionException.class, () -> CompletableFuture.runAsync(pushed::close).join());
    assertEquals(GcxException.InvalidContext.class, error.getCause().getClass());
  }

  @Test
  void virtualThreadsPushNothing() throws ReflectiveOperationException, InterruptedException {
    if (Runtime.version().feature() < 21) {
      return;
    }
    Throwable[] thrown = new Throwable[1];
    try (Context context = Context.create(part)) {
      Runnable push =
          () -> {
            try {
              context.push();
            } catch (GcxException problem) {
              thrown[0] = problem;
            }
          };
      ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, push))
          .join();
    }
    assertEquals(GcxException.NotPermitted.class, thrown[0].getClass());
  }

  @Test
  void eventsOrderAndTime() {
    try (Context context = Context.create(part);
        Stream first = context.createStream();
        Stream second = Stream.fromNative(first.nativeHandle());
        Event start = Event.create(device, EventOption.TIMING, EventOption.BLOCKING);
        Event end = Event.create(device, EventOption.TIMING);
        Event plain = Event.create(device);
        Event further = Event.fromNative(plain.nativeHandle())) {
      first.record(start);
      context.record(end);
      second.waitFor(start);
      context.waitFor(start);
      second.waitFor(first);
      end.synchronize();
      assertTrue(end.isDone());
      assertTrue(end.millisecondsSince(start) >= 0);
      assertThrows(GcxException.InvalidHandle.class, () -> end.millisecondsSince(plain));
      first.record(further);
      assertTrue(plain.isDone());
    }
  }

  @Test
  void whatIsForgottenIsClosedInAnyOrder() throws InterruptedException {
    for (Consumer<List<AutoCloseable>> order :
        List.<Consumer<List<AutoCloseable>>>of(
            objects -> objects.set(0, null),
            objects -> objects.set(1, null),
            objects -> objects.set(2, null))) {
      List<AutoCloseable> objects = objects();
      order.accept(objects);
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
    eventuallyNothingIsAlive();
  }

  private List<AutoCloseable> objects() {
    Context context = Context.create(part);
    return Arrays.asList(context, context.createStream(), Event.create(device));
  }
}

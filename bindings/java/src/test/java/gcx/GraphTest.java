package gcx;

import static gcx.LeaseTest.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Graphs that were captured once, on the SMs of any stream. */
@Timeout(60)
@SuppressWarnings("try") // some are closed in the middle, and are closed again
class GraphTest {
  private static final int BLOCKS = 264;

  private final Device device = new Device(0);
  private final Split split = device.sms().split(24, 32);

  @BeforeEach
  void nothingIsNoted() {
    IntStream.range(0, 4).forEach(Work::seen);
  }

  @AfterEach
  void nothingIsAlive() throws InterruptedException {
    LeaseTest.eventuallyNoLeaseIsAlive();
  }

  /** A graph whose captured one is gone. */
  private static Graph graph(Stream... streams) {
    long captured = Work.captured(BLOCKS, streams);
    try {
      return Graph.create(captured);
    } finally {
      Work.destroy(captured);
    }
  }

  private static void ranOn(Stream stream, int place) {
    stream.synchronize();
    assertArrayEquals(stream.probeSms(), Work.seen(place));
  }

  @Test
  void oneCaptureRunsOnAnySms() {
    try (Context first = Context.create(split.groups().get(0));
        Context second = Context.create(split.groups().get(1));
        Stream small = first.createStream();
        Stream large = second.createStream();
        Stream plain = Stream.fromNative(Work.plain());
        Graph graph = graph()) {
      for (Stream stream : List.of(large, small, plain, large)) {
        graph.launch(stream);
        ranOn(stream, 0);
      }
      GraphInfo info = graph.info();
      assertEquals(
          new GraphInfo(0, false, 1, 1, 1, info.executables(), 16, 4, info.made(), 0), info);
      assertTrue(info.executables() >= 2, info.toString());
      assertEquals("graph", graph.toString());
    }
  }

  @Test
  void partsHaveSmsOfTheirOwn() {
    try (Context first = Context.create(split.groups().get(0));
        Context second = Context.create(split.groups().get(1));
        Stream small = first.createStream();
        Stream large = second.createStream();
        Graph graph = graph(small, large)) {
      assertEquals(2, graph.info().partCount());
      graph.launchParts(List.of(large, small));
      ranOn(large, 0);
      ranOn(small, 1);
      refused(
          GcxException.InvalidValue.class, "Graph.launchParts", () -> graph.launchParts(List.of()));
      refused(GcxException.InvalidValue.class, "", () -> graph.launchParts(List.of(small)));
      graph.prepare(List.of(small.sms(), large.sms()));
      List<GraphNode> nodes = graph.nodes();
      int[] kernels =
          IntStream.range(0, nodes.size())
              .filter(node -> nodes.get(node).kind() == GraphNodeKind.KERNEL)
              .toArray();
      graph.setPart(0, kernels);
      graph.launch(large);
      ranOn(large, 0);
      ranOn(large, 1);
      refused(GcxException.InvalidValue.class, "Graph.setPart", () -> graph.setPart(9, kernels));
      refused(GcxException.InvalidValue.class, "Graph.setPart", () -> graph.setPart(-1, kernels));
      refused(GcxException.InvalidValue.class, "Graph.setPart", () -> graph.setPart(0, 99));
      graph.setPart(0); // of no nodes
      int parts = graph.info().partCount();
      refused(GcxException.InvalidValue.class, "at least one node", () -> graph.setPart(parts));
      assertEquals(parts, graph.info().partCount());
    }
  }

  @Test
  void kernelsGetOtherParameters() {
    try (Context context = Context.create(split.groups().get(0));
        Stream stream = context.createStream();
        Graph graph = graph(stream)) {
      GraphNode node = graph.nodes().get(0);
      int limit = node.blocksPerSm();
      assertTrue(limit > 0);
      assertEquals(
          new GraphNode(
              GraphNodeKind.KERNEL,
              GraphNode.NO_PARENT,
              0,
              false,
              Dim.of(BLOCKS),
              Dim.of(Work.BLOCK),
              new Dim(0, 0, 0),
              0,
              limit,
              "gcx_probe"),
          node);
      graph.launch(stream);
      ByteBuffer arguments = Work.arguments(1);
      graph.setKernel(0, new Dim(6, 2, 1), Dim.of(Work.BLOCK), 0, arguments);
      assertEquals(16, arguments.remaining());
      graph.launch(stream);
      stream.synchronize();
      assertEquals(BLOCKS, Work.blocks(0));
      assertEquals(12, Work.blocks(1));
      assertEquals(new Dim(6, 2, 1), graph.nodes().get(0).grid());
      graph.setKernel(0, Dim.of(3), Dim.of(Work.BLOCK), 0, null);
      graph.launch(stream);
      stream.synchronize();
      assertEquals(3, Work.blocks(1));
      ByteBuffer part = ByteBuffer.allocate(20);
      part.position(4).put(Work.arguments(2)).position(4);
      ByteBuffer readOnly = part.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
      graph.setKernel(0, Dim.of(5), Dim.of(Work.BLOCK), 0, readOnly);
      graph.launch(stream);
      stream.synchronize();
      assertEquals(5, Work.blocks(2));
    }
  }

  @Test
  void wrongParametersChangeNothing() {
    Dim block = Dim.of(Work.BLOCK);
    try (Context context = Context.create(split.groups().get(0));
        Stream stream = context.createStream();
        Graph graph = graph(stream)) {
      GraphNode before = graph.nodes().get(0);
      refused(
          GcxException.InvalidValue.class,
          "Graph.setKernel: arguments.remaining() is 3",
          () -> graph.setKernel(0, Dim.of(1), block, 0, nativeBuffer(3)));
      refused(
          GcxException.InvalidValue.class,
          "arguments.remaining() is 0",
          () -> graph.setKernel(0, Dim.of(1), block, 0, ByteBuffer.allocate(0)));
      refused(
          GcxException.InvalidValue.class,
          "grid and block",
          () -> graph.setKernel(0, Dim.of(0), block, 0, null));
      for (int node : new int[] {1, -1, Integer.MAX_VALUE}) {
        refused(
            GcxException.InvalidValue.class,
            "Graph.setKernel",
            () -> graph.setKernel(node, Dim.of(1), block, 0, null));
      }
      assertThrows(GcxException.class, () -> graph.setKernel(0, Dim.of(1), Dim.of(4096), 0, null));
      refused(
          GcxException.InvalidValue.class,
          "-1 is no number of bytes",
          () -> graph.setKernel(0, Dim.of(1), block, -1, null));
      refused(GcxException.InvalidValue.class, "-1", () -> Dim.of(-1));
      assertThrows(
          NullPointerException.class, () -> graph.setKernel(0, null, block, 0, Work.arguments(0)));
      assertEquals(before, graph.nodes().get(0));
      graph.launch(stream);
      stream.synchronize();
      assertEquals(BLOCKS, Work.blocks(0));
    }
  }

  private static ByteBuffer nativeBuffer(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }

  @Test
  void setKernel_otherByteOrder_isRefused() {
    ByteOrder other =
        ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
            ? ByteOrder.BIG_ENDIAN
            : ByteOrder.LITTLE_ENDIAN;
    try (Context context = Context.create(split.groups().get(0));
        Stream stream = context.createStream();
        Graph graph = graph(stream)) {
      ByteBuffer arguments = Work.arguments(1).order(other);
      refused(
          GcxException.InvalidValue.class,
          "Graph.setKernel: arguments.order() is " + other,
          () -> graph.setKernel(0, Dim.of(2), Dim.of(Work.BLOCK), 0, arguments));
      graph.launch(stream);
      stream.synchronize();
      assertEquals(BLOCKS, Work.blocks(0));
      assertEquals(0, Work.blocks(1));
    }
  }

  @Test
  void anotherCaptureOfTheSameIsTakenOver() {
    try (Context context = Context.create(split.groups().get(0));
        Stream stream = context.createStream();
        Graph graph = graph(stream)) {
      graph.launch(stream);
      long other = Work.captured(7, stream);
      graph.update(other);
      Work.destroy(other);
      graph.launch(stream);
      stream.synchronize();
      assertEquals(BLOCKS + 7, Work.blocks(0));
      long two = Work.captured(7, stream, stream);
      refused(GcxException.GraphUpdate.class, "Graph.update", () -> graph.update(two));
      Work.destroy(two);
      assertThrows(GcxException.class, () -> graph.update(0));
      graph.launch(stream);
      stream.synchronize();
      assertEquals(7, Work.blocks(0));
    }
  }

  @Test
  void aCooperativeGridThatDoesNotFitIsRefused() {
    try (Context context = Context.create(split.groups().get(0));
        Stream stream = context.createStream();
        Stream plain = Stream.fromNative(Work.plain())) {
      int most = plain.kernelFit(Work.kernel(), Work.BLOCK, 0).maxBlocks();
      long captured = Work.cooperative(most);
      try (Graph graph = Graph.create(captured)) {
        assertTrue(graph.nodes().get(0).cooperative());
        refused(GcxException.LaunchTooLarge.class, "gcx_probe", () -> graph.launch(stream));
        refused(
            GcxException.LaunchTooLarge.class,
            "Graph.prepare",
            () -> graph.prepare(List.of(stream.sms())));
        graph.launch(plain);
        plain.synchronize();
        assertEquals(most, Work.blocks(0));
      }
      Work.destroy(captured);
    }
  }

  @Test
  void executablesAreLimited() {
    long captured = Work.captured(1);
    try (Graph graph = Graph.create(captured, 1, GraphOption.NODE_PRIORITIES);
        Context first = Context.create(split.groups().get(0));
        Context second = Context.create(split.groups().get(1));
        Stream small = first.createStream();
        Stream large = second.createStream()) {
      graph.launch(small);
      graph.launch(large);
      small.synchronize();
      large.synchronize();
      assertEquals(new GraphInfo(0, true, 1, 1, 1, 1, 1, 2, 2, 1), graph.info());
      assertThrows(GcxException.InvalidValue.class, () -> Graph.create(captured, 0));
      assertThrows(GcxException.InvalidValue.class, () -> Graph.create(captured, -1));
    }
    Work.destroy(captured);
  }

  @Test
  void whatIsWrongIsRefused() {
    assertThrows(GcxException.class, () -> Graph.create(0));
    try (Graph graph = graph();
        Context elsewhere = Context.create(new Device(1).sms());
        Stream theirs = elsewhere.createStream()) {
      refused(GcxException.InvalidDevice.class, "Graph.launch", () -> graph.launch(theirs));
      refused(
          GcxException.InvalidDevice.class,
          "Graph.prepare",
          () -> graph.prepare(List.of(new Device(1).sms().split(24).groups().get(0))));
      refused(GcxException.InvalidValue.class, "Graph.prepare", () -> graph.prepare(List.of()));
      assertThrows(NullPointerException.class, () -> graph.launch(null));
      assertThrows(NullPointerException.class, () -> graph.prepare(null));
      assertThrows(NullPointerException.class, () -> graph.setPart(0, (int[]) null));
      theirs.close();
      refused(GcxException.InvalidHandle.class, "Stream", () -> graph.launch(theirs));
      graph.close();
      graph.close();
      assertTrue(graph.isClosed());
      assertEquals("graph, closed", graph.toString());
      refused(GcxException.InvalidHandle.class, "the Graph is closed", graph::info);
      refused(GcxException.InvalidHandle.class, "the Graph is closed", graph::nodes);
    }
  }

  @Test
  void threadsLaunchOneGraphWhileItChangesAndIsClosed() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    Graph graph = graph();
    try (Lease lease = device.acquire(24);
        Context context = Context.create(split.groups().get(1));
        Stream stream = context.createStream()) {
      Stream ofLease = lease.stream();
      List<Callable<Integer>> workers =
          List.of(
              () -> launched(graph, ofLease),
              () -> launched(graph, stream),
              () -> {
                for (int i = 0; i < 60; i++) {
                  lease.resize(i % 2 == 0 ? 48 : 24);
                  graph.setKernel(0, Dim.of(1 + i % 7), Dim.of(Work.BLOCK), 0, Work.arguments(3));
                }
                // The third launch to end began after the change.
                long before = graph.info().launches();
                long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
                while (graph.info().launches() < before + 3 && System.nanoTime() < deadline) {
                  Thread.onSpinWait();
                }
                graph.close();
                return 60;
              });
      for (Future<Integer> worker : pool.invokeAll(workers)) {
        assertNotEquals(0, worker.get());
      }
      stream.synchronize();
      lease.synchronize();
      assertTrue(Work.blocks(3) > 0);
      Work.seen(0);
    } finally {
      pool.shutdown();
    }
  }

  private static int launched(Graph graph, Stream stream) {
    for (int count = 0; true; count++) {
      try {
        graph.launch(stream);
      } catch (GcxException.InvalidHandle closed) {
        return count + 1;
      }
    }
  }

  @Test
  void whatNobodyRefersToIsGivenUp() throws InterruptedException {
    for (int i = 0; i < 50; i++) {
      try (Context context = Context.create(split.groups().get(i % 2))) {
        graph(context.createStream()).launch(context.createStream());
      }
    }
    LifetimeTest.eventuallyNothingIsAlive();
    assertFalse(Work.blocks(0) == 0);
    Cache.trim(64); // its streams are as many as contexts keep: the next ones would not be kept
  }
}

package gcx;

import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Graphs: what their records hold, and the arguments of their kernels. */
@Timeout(60)
class GraphTest {
  private static final int BLOCKS = 264;
  private static final Dim BLOCK = Dim.of(Work.BLOCK);

  private final Split split = new Device(0).sms().split(24, 32);
  private Context context;
  private Stream stream;

  @BeforeEach
  void createStream() {
    IntStream.range(0, 4).forEach(Work::seen);
    context = Context.create(split.groups().get(0));
    stream = context.createStream();
  }

  @AfterEach
  void closeStream() throws InterruptedException {
    stream.close();
    context.close();
    Support.awaitNothingAlive();
  }

  /** Creates a graph whose captured original is destroyed. */
  private static Graph graph(Stream... streams) {
    long captured = Work.captured(BLOCKS, streams);
    try {
      return Graph.create(captured);
    } finally {
      Work.destroy(captured);
    }
  }

  private static void assertRanOn(Stream stream, int slot) {
    stream.synchronize();
    assertArrayEquals(stream.probeSms(), Work.seen(slot));
  }

  private void launchAndWait(Graph graph) {
    graph.launch(stream);
    stream.synchronize();
  }

  @Test
  void recordsHoldTheGraphsFields() {
    long captured = Work.captured(BLOCKS);
    try (Graph graph = Graph.create(captured, 1, GraphOption.NODE_PRIORITIES);
        Stream plain = Stream.fromNative(Work.plain())) {
      graph.launch(plain);
      assertRanOn(plain, 0);
      graph.launch(stream);
      assertRanOn(stream, 0);
      assertEquals(new GraphInfo(0, true, 1, 1, 1, 1, 1, 2, 2, 1), graph.info());
      GraphNode node = graph.nodes().get(0);
      assertTrue(node.blocksPerSm() > 0);
      assertEquals(
          new GraphNode(
              GraphNodeKind.KERNEL,
              GraphNode.NO_PARENT,
              0,
              false,
              Dim.of(BLOCKS),
              BLOCK,
              new Dim(0, 0, 0),
              0,
              node.blocksPerSm(),
              "gcx_probe"),
          node);
    }
    Work.destroy(captured);
  }

  @Test
  void listsOfStreamsResourcesAndNodesReachC() {
    try (Context second = Context.create(split.groups().get(1));
        Stream large = second.createStream();
        Graph graph = graph(stream, large)) {
      graph.launch(large, stream);
      assertRanOn(large, 0);
      assertRanOn(stream, 1);
      graph.prepare(List.of(stream.sms(), large.sms()));
      graph.setPart(0, 0, 1);
      assertEquals(List.of(0, 0), graph.nodes().stream().map(GraphNode::part).toList());
      graph.setPart(0); // an empty list of nodes
      refused(GcxException.InvalidValue.class, "Graph.launch", () -> graph.launch());
      refused(GcxException.InvalidValue.class, "Graph.setPart", () -> graph.setPart(-1, 0));
      long other = Work.captured(7, stream);
      refused(GcxException.GraphUpdate.class, "Graph.update", () -> graph.update(other));
      Work.destroy(other);
    }
  }

  @Test
  void kernelArgumentsAreReadFromPositionToLimit() {
    try (Graph graph = graph(stream)) {
      ByteBuffer arguments = Work.arguments(1);
      graph.setKernel(0, new Dim(6, 2, 1), BLOCK, 0, arguments);
      assertEquals(16, arguments.remaining());
      launchAndWait(graph);
      assertEquals(12, Work.blocks(1));
      assertEquals(new Dim(6, 2, 1), graph.nodes().get(0).grid());
      graph.setKernel(0, Dim.of(3), BLOCK, 0, null);
      launchAndWait(graph);
      assertEquals(3, Work.blocks(1));
      ByteBuffer part = ByteBuffer.allocate(20);
      part.position(4).put(Work.arguments(2)).position(4);
      ByteBuffer readOnly = part.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
      graph.setKernel(0, Dim.of(5), BLOCK, 0, readOnly);
      launchAndWait(graph);
      assertEquals(5, Work.blocks(2));
    }
  }

  @Test
  void kernelArgumentsThatAreWrongChangeNothing() {
    ByteOrder other =
        ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
            ? ByteOrder.BIG_ENDIAN
            : ByteOrder.LITTLE_ENDIAN;
    Class<GcxException.InvalidValue> invalid = GcxException.InvalidValue.class;
    try (Graph graph = graph(stream)) {
      GraphNode before = graph.nodes().get(0);
      for (int bytes : new int[] {0, 3}) {
        ByteBuffer few = ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
        refused(
            invalid,
            "Graph.setKernel: arguments.remaining() is " + bytes,
            () -> graph.setKernel(0, Dim.of(1), BLOCK, 0, few));
      }
      refused(
          invalid,
          "Graph.setKernel: arguments.order() is " + other,
          () -> graph.setKernel(0, Dim.of(2), BLOCK, 0, Work.arguments(1).order(other)));
      for (int node : new int[] {1, -1, Integer.MAX_VALUE}) {
        refused(invalid, "Graph.setKernel", () -> graph.setKernel(node, Dim.of(1), BLOCK, 0, null));
      }
      refused(invalid, "grid and block", () -> graph.setKernel(0, Dim.of(0), BLOCK, 0, null));
      refused(invalid, "number of bytes: -1", () -> graph.setKernel(0, Dim.of(1), BLOCK, -1, null));
      refused(invalid, "-1", () -> Dim.of(-1));
      assertThrows(
          NullPointerException.class, () -> graph.setKernel(0, null, BLOCK, 0, Work.arguments(0)));
      assertEquals(before, graph.nodes().get(0));
      launchAndWait(graph);
      assertEquals(BLOCKS, Work.blocks(0));
      assertEquals(0, Work.blocks(1));
    }
  }

  @Test
  void kernelFitCountsWhatTheSmsHold() {
    long kernel = Work.kernel();
    KernelFit fit = stream.kernelFit(kernel, Work.BLOCK, 0, 0);
    assertEquals(24, fit.smCount());
    assertEquals(24 * fit.blocksPerSm(), fit.maxBlocks());
    assertEquals(0, fit.maxClusters());
    KernelFit clusters = stream.kernelFit(kernel, Work.BLOCK, 0, 4);
    assertEquals(4 * clusters.maxClusters(), clusters.maxBlocks());
    refused(
        GcxException.InvalidValue.class,
        "Stream.kernelFit: blockThreads is ",
        () -> stream.kernelFit(kernel, -1, 0, 0));
    refused(
        GcxException.InvalidValue.class,
        "number of bytes: -1",
        () -> stream.kernelFit(kernel, 32, -1, 0));
  }

  @Test
  void valuesThatJavaCannotPassAreRefused() {
    long captured = Work.captured(1);
    assertThrows(GcxException.class, () -> Graph.create(0));
    assertThrows(GcxException.InvalidValue.class, () -> Graph.create(captured, 0));
    assertThrows(GcxException.InvalidValue.class, () -> Graph.create(captured, -1));
    Work.destroy(captured);
    try (Graph graph = graph()) {
      refused(GcxException.InvalidValue.class, "Graph.prepare", () -> graph.prepare(List.of()));
      assertThrows(NullPointerException.class, () -> graph.launch((Stream) null));
      assertThrows(NullPointerException.class, () -> graph.prepare(null));
      assertThrows(NullPointerException.class, () -> graph.setPart(0, (int[]) null));
    }
  }
}

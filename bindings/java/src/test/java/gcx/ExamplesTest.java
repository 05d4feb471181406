package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The programs of examples/java. */
class ExamplesTest {
  @Test
  void scenarioShowsDisjointPartitions() throws Exception {
    List<String> lines = Child.of("Scenario").run(0);
    assertTrue(lines.get(0).startsWith("partition 0 runs on 108 SMs: 6 7 8 "), lines.get(0));
    assertTrue(
        lines.get(1).startsWith("partition 1 runs on 24 SMs: 0 1 2 3 4 5 16 "), lines.get(1));
    assertEquals("no SM is in both", lines.get(2));
    assertTrue(lines.get(3).startsWith("140 SMs: SmResource.split: "), lines.get(3));
    assertTrue(lines.get(3).contains("device 0 has 132"), lines.get(3));
    assertEquals(4, lines.size());
  }

  @Test
  void leasesShowTheirStreamsFollow() throws Exception {
    assertEquals(
        List.of(
            "decode runs on 32 SMs",
            "prefill runs on 100 SMs",
            "decode runs on 64 SMs",
            "prefill runs on 68 SMs",
            "decode runs on 32 SMs",
            "prefill runs on 100 SMs",
            "decode has 32 SMs of device 0, COSCHEDULED",
            "prefill has 100 SMs of device 0, COSCHEDULED"),
        Child.of("Leases").run(0));
  }

  @Test
  void jcudaStreamHasTheSameHandle() throws Exception {
    Class<?> example = Class.forName("JCudaStream"); // which is in no package
    try (Context context = Context.create(new Device(0).sms().split(24).groups().get(0));
        Stream stream = context.createStream()) {
      Object same = example.getMethod("of", Stream.class).invoke(null, stream);
      String handle = Long.toString(stream.nativeHandle());
      assertTrue(same.toString().contains(handle), same::toString);
    }
  }
}

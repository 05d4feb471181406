package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The programs of examples/java. */
class ExamplesTest {
  @Test
  void theScenario() throws Exception {
    List<String> lines = Child.of("Scenario").run(0);
    assertEquals("108 SMs and 24 SMs, 0 in both", lines.get(0));
    assertTrue(lines.get(1).startsWith("SmResource.split: "), lines.get(1));
    assertTrue(lines.get(1).contains("device 0 has 132"), lines.get(1));
    assertEquals(2, lines.size());
  }

  @Test
  void jcudaTakesTheStream() throws Exception {
    Class<?> example = Class.forName("JCudaStream"); // which is in no package
    try (Context context = Context.create(new Device(0).sms().split(24).groups().get(0));
        Stream stream = context.createStream()) {
      Object same = example.getMethod("of", Stream.class).invoke(null, stream);
      String handle = Long.toString(stream.nativeHandle());
      assertTrue(same.toString().contains(handle), same::toString);
    }
  }
}

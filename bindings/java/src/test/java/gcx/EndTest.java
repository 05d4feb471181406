package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A process that ends while objects live and threads work. */
class EndTest {
  private static final List<AutoCloseable> KEPT = new ArrayList<>();

  /** Ends in the way that it is given. */
  static final class Program {
    public static void main(String[] arguments) throws InterruptedException {
      SmResource all = new Device(0).sms();
      Split split = all.split(24, 32);
      CountDownLatch busy = new CountDownLatch(4);
      for (int i = 0; i < 4; i++) {
        Context context = Context.create(split.groups().get(i % 2));
        Stream stream = context.createStream();
        KEPT.add(context);
        KEPT.add(stream);
        KEPT.add(Event.create(new Device(0)));
        EndTestWorkers.start(() -> work(stream, busy));
      }
      busy.await();
      System.out.println("live " + Context.live().size());
      switch (arguments[0]) {
        case "exit" -> System.exit(0);
        case "halt" -> Runtime.getRuntime().halt(0);
        case "hook" -> Runtime.getRuntime().addShutdownHook(new Thread(Program::closeAll));
        default -> KEPT.clear();
      }
    }

    private static void work(Stream stream, CountDownLatch busy) {
      stream.probeSms();
      stream.synchronize();
      busy.countDown();
    }

    private static void closeAll() {
      for (AutoCloseable object : KEPT) {
        try {
          object.close();
        } catch (Exception problem) {
          System.out.println(problem);
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit", "halt", "hook", "return"})
  void theProcessEndsQuietly(String manner) throws Exception {
    assertEquals(List.of("live 2"), Child.of(Program.class.getName()).runWith(manner));
  }

  @Test
  void aDriverThatIsNotThereIsSaid() throws Exception {
    Child child = Child.of("Scenario");
    child.environment().put("GCX_DRIVER", "/nowhere/libcuda.so.1");
    List<String> lines = child.run(1);
    assertEquals(
        true,
        lines.stream().anyMatch(line -> line.contains("GcxException$DriverNotFound")),
        lines::toString);
  }
}

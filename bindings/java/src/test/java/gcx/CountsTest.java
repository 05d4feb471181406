package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The counts that libraries are told: in processes of their own, as it is for good. */
class CountsTest {
  /** What another library of the process is told; -1: the driver says nothing. */
  static native int told();

  private static void tell(Object what) {
    System.out.println(what);
  }

  /** Asks before the driver is there, or after if it is told so. */
  static final class Asker {
    public static void main(String[] arguments) {
      System.load(System.getProperty("gcx.work"));
      tell(Gcx.reportsPartitionCounts());
      if (arguments.length > 0) {
        told(); // loads libcuda, and so does any library of CUDA's
        try {
          Gcx.reportPartitionCounts();
        } catch (GcxException error) {
          tell(error.result() + " " + error.getMessage().split(":")[0]);
        }
        tell(Gcx.reportsPartitionCounts());
        return;
      }
      Gcx.reportPartitionCounts();
      Gcx.reportPartitionCounts();
      tell(Gcx.reportsPartitionCounts());
      Device device = new Device(0);
      try (Context context = Context.create(device.sms().split(24).groups().get(0))) {
        tell(told());
        try (Context.Pushed pushed = context.push()) {
          tell(told());
          tell(CompletableFuture.supplyAsync(CountsTest::told).join());
          tell(pushed != null && device.info().smCount() == 132);
        }
        tell(told());
      }
    }
  }

  @Test
  void itIsTooLateOnceSomebodyHasLoadedLibcuda(@TempDir Path folder) throws Exception {
    Files.copy(Path.of(Gcx.simulatorPath()), folder.resolve("libcuda.so.1"));
    Child child = Child.of(Asker.class.getName(), "-ea");
    child.environment().put("LD_LIBRARY_PATH", folder.toString());
    assertEquals(
        List.of("false", "NOT_PERMITTED Gcx.reportPartitionCounts", "false"),
        child.runWith("late"));
  }

  @Test
  void aThreadIsToldItsPartitionsCount() throws Exception {
    Child child = Child.of(Asker.class.getName(), "-ea");
    assertEquals(List.of("false", "true", "132", "24", "132", "true", "132"), child.run(0));
  }
}

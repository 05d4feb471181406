package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Another JVM, for what concerns a whole process. */
final class Child {
  private final ProcessBuilder builder;

  private Child(ProcessBuilder builder) {
    this.builder = builder;
  }

  /** The program with this one's class path, and with these further words for the JVM before it. */
  static Child of(String program, String... options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xcheck:jni");
    if (Runtime.version().feature() >= 24) {
      command.add("--enable-native-access=ALL-UNNAMED"); // else the JVM warns
    }
    command.add("-Dgcx.work=" + System.getProperty("gcx.work"));
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), program));
    return new Child(new ProcessBuilder(command).redirectErrorStream(true));
  }

  Map<String, String> environment() {
    return builder.environment();
  }

  /** For who speaks to it while it runs, and ends it. */
  Process start() throws IOException {
    return builder.start();
  }

  /** Runs it to its good end with a word for the program. */
  List<String> runWith(String word) throws IOException, InterruptedException {
    builder.command().add(word);
    return run(0);
  }

  /** Runs it to its end, which has to come with this status; gives what it printed. */
  List<String> run(int status) throws IOException, InterruptedException {
    Process process = builder.start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "it doesn't end");
    assertEquals(status, process.exitValue(), printed);
    assertTrue(!printed.contains("in native method"), printed); // a warning of -Xcheck:jni
    return printed.lines().toList();
  }
}

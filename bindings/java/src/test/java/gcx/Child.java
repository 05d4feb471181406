package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Another JVM, for tests that concern a whole process. */
final class Child {
  private final ProcessBuilder builder;

  private Child(ProcessBuilder builder) {
    this.builder = builder;
  }

  /** Returns the program with this JVM's class path and the further options. */
  static Child of(String program, String... options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xcheck:jni", "-ea"));
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

  /** Runs it with an argument; fails unless it exits with 0. */
  List<String> runWith(String word) throws IOException, InterruptedException {
    builder.command().add(word);
    return run(0);
  }

  /** Runs it and returns the lines that it printed; fails unless it exits with the status. */
  List<String> run(int status) throws IOException, InterruptedException {
    // A JVM that halts does not delete its temporary files.
    Path temporary = Files.createTempDirectory("gcx-test-");
    builder.command().add(1, "-Djava.io.tmpdir=" + temporary); // a later option overrides it
    try {
      return lines(status);
    } finally {
      try (Stream<Path> files = Files.walk(temporary)) {
        files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
      }
    }
  }

  private List<String> lines(int status) throws IOException, InterruptedException {
    Process process = builder.start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "the process has not ended after 60 seconds");
    assertEquals(status, process.exitValue(), printed);
    assertTrue(!printed.contains("in native method"), printed); // a warning of -Xcheck:jni
    return printed.lines().toList();
  }
}

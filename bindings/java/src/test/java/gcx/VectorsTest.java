package gcx;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The vectors that all languages answer alike, in one process for each file. */
class VectorsTest {
  static Stream<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(Path.of(System.getProperty("gcx.vectors")))) {
      return files.filter(file -> file.toString().endsWith(".tsv")).sorted().toList().stream();
    }
  }

  @ParameterizedTest
  @MethodSource("files")
  void vectorsOfFileAgree(Path file) throws Exception {
    Child child = Child.of(Vectors.class.getName());
    child.environment().remove("GCX_DRIVER");
    List<String> lines = child.runWith(file.toString());
    String last = lines.get(lines.size() - 1);
    assertTrue(last.contains(" vectors agree, 0 differ"), last);
    System.out.println(last);
  }
}

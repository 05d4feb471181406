package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the libraries of the jar are copied and loaded. */
class LoadingTest {
  @TempDir Path temporary;
  private Path place;

  @BeforeEach
  void createTemporaryFolder() throws IOException {
    place = Files.createDirectory(temporary.resolve("tmp"));
  }

  /** Uses gcx, and lists the folder for temporary files. */
  static final class Show {
    public static void main(String[] arguments) throws IOException {
      Gcx.version();
      Path place = Path.of(System.getProperty("java.io.tmpdir"));
      try (Stream<Path> files = Files.walk(place)) {
        for (Path file : files.filter(file -> !file.equals(place)).sorted().toList()) {
          System.out.println(
              PosixFilePermissions.toString(Files.getPosixFilePermissions(file))
                  + " "
                  + place.relativize(file));
        }
      }
    }
  }

  private Child show(String... options) {
    List<String> all = new ArrayList<>(List.of(options));
    all.add(0, "-Djava.io.tmpdir=" + place); // a later option overrides it
    Child child = Child.of(Show.class.getName(), all.toArray(String[]::new));
    child.environment().remove("GCX_DRIVER");
    return child;
  }

  private List<Path> left() throws IOException {
    try (Stream<Path> files = Files.list(place)) {
      return files.filter(file -> !file.getFileName().toString().startsWith("hsperf")).toList();
    }
  }

  @Test
  void loadedLibrariesLeaveAnEmptyPrivateFolder() throws Exception {
    List<String> seen = show().run(0);
    assertEquals(1, seen.size(), seen.toString());
    assertTrue(seen.get(0).matches("rwx------ gcx-\\d+"), seen.toString());
    assertEquals(List.of(), left());
  }

  @Test
  void simulatedDriverIsCopiedWhenRequested() throws Exception {
    Child child = show();
    child.environment().put("GCX_DRIVER", "sim:h100@13.0");
    List<String> seen = child.run(0);
    assertEquals(3, seen.size(), seen.toString());
    assertTrue(seen.get(1).matches("rwx------ gcx-\\d+/gcx"), seen.toString());
    assertTrue(seen.get(2).endsWith("/gcx/libgcx-sim.so"), seen.toString());
    assertEquals(List.of(), left());
  }

  @Test
  void libraryPathCopiesNothing() throws Exception {
    Path folder = Support.unpack(temporary.resolve("a folder"));
    Child child = show("-Dgcx.library.path=" + folder);
    child.environment().put("GCX_DRIVER", "sim:h100@13.0");
    assertEquals(List.of(), child.run(0));
  }

  @Test
  void loadingFailedMessageNamesTheFolder() throws Exception {
    String said = String.join("\n", show("-Dgcx.library.path=" + place).run(1));
    assertTrue(said.contains("-Dgcx.library.path=" + place + ": there is no libgcx-java.so"), said);
    Path missing = temporary.resolve("no such folder");
    said = String.join("\n", show("-Djava.io.tmpdir=" + missing).run(1));
    assertTrue(said.contains("can't copy the libraries to " + missing), said);
    said = String.join("\n", show("-Dos.arch=sparc").run(1));
    assertTrue(said.contains("the jar has no /native/linux-sparc/libgcx.so.1"), said);
  }

  @Test
  void copyingFailedLeavesNothing() throws Exception {
    Path jar = temporary.resolve("jar");
    Path libraries = Files.createDirectories(jar.resolve("native/linux-sparc"));
    Files.createFile(libraries.resolve("libgcx.so.1"));
    Path unreadable = libraries.resolve("libgcx-java-log.so.1");
    Files.createSymbolicLink(unreadable, Path.of("/proc/self/mem"));
    List<String> lines = show("-Dos.arch=sparc", "-Xbootclasspath/a:" + jar).run(1);
    String said = String.join("\n", lines);
    assertTrue(said.contains(place + ": java.io.IOException: Input/output error"), said);
    assertEquals(List.of(), left());
    Files.delete(unreadable); // JUnit warns about links
  }

  @Test
  void libraryPathIncompleteOrMixedMessageSaysSo() throws Exception {
    Path folder = Support.unpack(temporary.resolve("native"));
    Path library = folder.resolve("libgcx.so.1");
    String present = Files.readString(library, StandardCharsets.ISO_8859_1);
    String older = present.replace("\0gcx_verify\0", "\0gcx_absent\0");
    Files.writeString(library, older, StandardCharsets.ISO_8859_1);
    String said = String.join("\n", show("-Dgcx.library.path=" + folder).run(1));
    String mixed = "undefined symbol: gcx_verify; this process has libgcx.so.1 of another version";
    assertTrue(said.contains(mixed), said);
    Files.delete(library);
    said = String.join("\n", show("-Dgcx.library.path=" + folder).run(1));
    assertTrue(said.contains("; unpack all of /native/linux-x86_64/ where"), said);
  }
}

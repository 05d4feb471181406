package gcx;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads the libraries of the jar.
 *
 * <p>They are copied to a new folder with a random name and mode 700, loaded and deleted. The
 * simulated driver and the library that reports partitions' counts are copied when they are needed.
 * They stay until the process ends, like the folder.
 */
final class NativeLibrary {
  static final String FOLDER_PROPERTY = "gcx.library.path";

  private static final String LIBRARY = "libgcx.so.1";
  private static final String LOG = "libgcx-java-log.so.1";
  private static final String BRIDGE = "libgcx-java.so";
  private static final String SIMULATION = "gcx/libgcx-sim.so";
  private static final String COUNTS = "gcx/libgcx-counts.so";
  private static final FileAttribute<?> PRIVATE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  /** The folder of the copies, or null if a property names the folder of the libraries. */
  private static Path folder;

  /** Distinguishes the folder from one that was created later at the same path. */
  private static Object identity;

  private NativeLibrary() {}

  /** Called once, by the class with the native methods. */
  static synchronized void load() {
    String chosen = System.getProperty(FOLDER_PROPERTY);
    if (chosen != null) {
      loadFrom(Path.of(chosen).toAbsolutePath());
      return;
    }
    try {
      folder = Files.createTempDirectory("gcx-", PRIVATE);
      folder.toFile().deleteOnExit();
      identity = identityOf(folder);
      copy(LIBRARY);
      copy(LOG);
      copy(BRIDGE);
      if (isSimulated(System.getenv("GCX_DRIVER"))) {
        // Before the library: another class loader with the same library may call it at once.
        provideSimulation();
      }
      System.load(folder.resolve(BRIDGE).toString());
    } catch (IOException problem) {
      throw failed(
          "can't copy the libraries to "
              + System.getProperty("java.io.tmpdir")
              + ": "
              + problem
              + "; -Djava.io.tmpdir=FOLDER names another place, -D"
              + FOLDER_PROPERTY
              + "=FOLDER one that has the libraries",
          problem);
    } catch (UnsatisfiedLinkError problem) {
      throw refused(
          problem,
          "where programs can't be run from the folder for temporary files, unpack "
              + resourceFolder()
              + " of the jar elsewhere and name it by -D"
              + FOLDER_PROPERTY
              + "=FOLDER");
    } finally {
      if (folder != null) {
        delete(LIBRARY);
        delete(LOG);
        delete(BRIDGE);
      }
    }
  }

  static boolean isSimulated(String driver) {
    return driver != null && driver.startsWith("sim:");
  }

  /**
   * Copies the simulated driver to where the library looks for it. If the jar that contains it is
   * missing, does nothing: the library's error names that jar.
   */
  static void provideSimulation() {
    String resource = resourceFolder().substring(1) + SIMULATION;
    if (NativeLibrary.class.getClassLoader().getResource(resource) != null) {
      provide(SIMULATION, "the simulated driver");
    }
  }

  /** Copies the library that reports partitions' counts to where the library looks for it. */
  static void provideCounts() {
    provide(COUNTS, "the library that reports partitions' SM counts");
  }

  private static synchronized void provide(String name, String what) {
    if (folder == null || Files.exists(folder.resolve(name))) {
      return;
    }
    try {
      if (!identity.equals(identityOf(folder))) {
        throw new IOException("another folder is at its path");
      }
      Path parent = folder.resolve(name).getParent();
      if (!Files.exists(parent)) {
        Files.createDirectory(parent, PRIVATE).toFile().deleteOnExit();
      }
      copy(name);
      folder.resolve(name).toFile().deleteOnExit();
    } catch (IOException problem) {
      throw new GcxException.DriverNotFound(
          what + " can't be copied to " + folder + ": " + problem);
    }
  }

  private static void loadFrom(Path chosen) {
    Path bridge = chosen.resolve(BRIDGE);
    if (!Files.isRegularFile(bridge)) {
      throw failed("-D" + FOLDER_PROPERTY + "=" + chosen + ": there is no " + BRIDGE, null);
    }
    try {
      System.load(bridge.toString());
    } catch (UnsatisfiedLinkError problem) {
      if (!problem.getMessage().contains("already loaded in another")) {
        throw refused(
            problem,
            "unpack all of " + resourceFolder() + " where programs can be run, not only " + BRIDGE);
      }
      loadCopyOf(bridge, problem);
    }
  }

  /**
   * Loads a copy of the bridge, since the JVM loads a file in one class loader only. The libraries
   * that the bridge needs are loaded already.
   */
  private static void loadCopyOf(Path bridge, UnsatisfiedLinkError refused) {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    List<Throwable> problems = new ArrayList<>();
    for (Path parent : List.of(temporary, bridge.getParent())) {
      Path copy = null;
      try {
        copy = Files.createTempFile(parent, "gcx-java-", ".so");
        Files.write(copy, Files.readAllBytes(bridge));
        System.load(copy.toString());
        return;
      } catch (IOException | UnsatisfiedLinkError problem) {
        problems.add(problem);
      } finally {
        if (copy != null && !copy.toFile().delete()) {
          copy.toFile().deleteOnExit();
        }
      }
    }
    UnsatisfiedLinkError error =
        failed(
            refused.getMessage()
                + "; a copy of it for this class loader can't be loaded from "
                + temporary
                + " or "
                + bridge.getParent()
                + "; -Djava.io.tmpdir=FOLDER names a folder from which programs can be run",
            refused);
    problems.forEach(error::addSuppressed);
    throw error;
  }

  private static Object identityOf(Path path) throws IOException {
    return Files.readAttributes(path, BasicFileAttributes.class).fileKey();
  }

  /** Opens a library in this jar or, for the simulated driver, in any jar; null if missing. */
  private static InputStream open(String resource) {
    return resource.endsWith(SIMULATION)
        ? NativeLibrary.class.getClassLoader().getResourceAsStream(resource.substring(1))
        : NativeLibrary.class.getResourceAsStream(resource);
  }

  private static void copy(String name) throws IOException {
    String resource = resourceFolder() + name;
    try (InputStream library = open(resource)) {
      if (library == null) {
        throw new IOException("the jar has no " + resource + ": it is built for other machines");
      }
      // Atomically: a call of another class loader may look for it at any time.
      Path whole = folder.resolve(name);
      Path part = whole.resolveSibling(whole.getFileName() + ".part");
      try {
        Files.copy(library, part);
        Files.move(part, whole, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        Files.deleteIfExists(part); // what fits, if the place is full
      }
    }
  }

  private static void delete(String name) {
    if (!folder.resolve(name).toFile().delete()) {
      folder.resolve(name).toFile().deleteOnExit();
    }
  }

  private static String resourceFolder() {
    String machine = System.getProperty("os.arch");
    String system = System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT);
    return "/native/" + system + "-" + (machine.equals("amd64") ? "x86_64" : machine) + "/";
  }

  /** Returns the loader's error with advice, unless the libraries are of two versions. */
  private static UnsatisfiedLinkError refused(UnsatisfiedLinkError problem, String advice) {
    String said = problem.getMessage();
    boolean mixed = said.contains("undefined symbol");
    return failed(
        said + "; " + (mixed ? "this process has " + LIBRARY + " of another version" : advice),
        problem);
  }

  private static UnsatisfiedLinkError failed(String reason, Throwable cause) {
    UnsatisfiedLinkError error = new UnsatisfiedLinkError("gcx: " + reason);
    error.initCause(cause);
    return error;
  }
}

package gcx;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Runs the vectors of a file with the Java package; see tests/vectors/README.md. */
final class Vectors {
  /** Java's types have no unknown numbers, and a second close does nothing. */
  private static final Set<String> LEFT_OUT = Set.of("number", "twice");

  final Map<String, Object> objects = new LinkedHashMap<>();
  final Deque<Map.Entry<String, Context.Pushed>> pushed = new ArrayDeque<>();
  CacheStats begin;

  /** An answer differs from the expected one. */
  static final class Different extends Exception {
    private static final long serialVersionUID = 1L;

    Different(String message) {
      super(message);
    }
  }

  public static void main(String[] files) throws IOException {
    Path file = Path.of(files[0]);
    int agree = 0;
    int differ = 0;
    int leftOut = 0;
    List<String> lines = Files.readAllLines(file);
    for (int next = 0; next < lines.size(); ) {
      String[] head = lines.get(next).split("\t");
      if (!head[0].equals("vector")) {
        next++;
        continue;
      }
      int end = next + 1;
      while (end < lines.size() && !lines.get(end).startsWith("vector\t")) {
        end++;
      }
      if (Arrays.stream(head).skip(2).anyMatch(LEFT_OUT::contains)) {
        leftOut++;
      } else if (agrees(file, lines, next, end)) {
        agree++;
      } else {
        differ++;
      }
      next = end;
    }
    System.out.printf(
        "%s: %d vectors agree, %d differ, %d left out%n", file, agree, differ, leftOut);
    System.exit(differ == 0 && agree > 0 ? 0 : 1);
  }

  private static boolean agrees(Path file, List<String> lines, int first, int end) {
    Vectors vector = new Vectors();
    int at = first;
    try {
      if (at > 4) { // the first vector opens the driver
        vector.begin = Cache.stats();
      }
      while (++at < end) {
        String line = lines.get(at);
        if (!line.isEmpty() && !line.startsWith("#")) {
          vector.step(line.split("\t"));
        }
      }
      vector.closeAll();
      return true;
    } catch (Exception problem) {
      System.out.printf("%s:%d: %s: %s%n", file, at + 1, lines.get(first), problem);
      vector.closeAfterFailure();
      return false;
    }
  }

  private void step(String[] fields) throws Exception {
    String operation = fields[0];
    String expected = fields[1];
    String[] rest = Arrays.copyOfRange(fields, 2, fields.length);
    VectorStep answer = new VectorStep(this, operation, rest);
    try {
      answer.run();
    } catch (GcxException problem) {
      if (!problem.resultName().equals(expected)) {
        throw new Different(operation + ": expected " + expected + ", got " + problem);
      }
      int pieces = answer.read;
      if (pieces < rest.length) {
        for (String piece : rest[pieces].split("\\|")) {
          if (!problem.detail().contains(piece)) {
            throw new Different(operation + ": the message lacks " + piece + ": " + problem);
          }
        }
      }
      return;
    }
    List<String> outputs = Arrays.asList(rest).subList(answer.read, rest.length);
    if (!expected.equals("GCX_SUCCESS") || !outputs.equals(answer.outputs)) {
      throw new Different(
          operation + ": expected " + expected + " " + outputs + ", got " + answer.outputs);
    }
  }

  private void closeAll() throws Exception {
    while (!pushed.isEmpty()) {
      pushed.pop().getValue().close();
    }
    List<Object> open = new ArrayList<>(objects.values());
    for (int i = open.size() - 1; i >= 0; i--) {
      if (open.get(i) instanceof AutoCloseable object) {
        object.close();
      }
    }
    if (!Context.live().isEmpty()) {
      throw new Different("contexts are alive at the end: " + Context.live());
    }
  }

  private void closeAfterFailure() {
    try {
      closeAll();
    } catch (Exception problem) {
      System.out.println("and at the end: " + problem);
    }
  }
}

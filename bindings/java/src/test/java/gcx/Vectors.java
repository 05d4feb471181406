package gcx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Answers the steps of vectors for tests/vectors/ask.py; see the README there. */
final class Vectors {
  final Map<String, Object> objects = new LinkedHashMap<>();
  final Deque<Map.Entry<String, Context.Pushed>> pushed = new ArrayDeque<>();
  CacheStats begin;

  /** An answer that is no result of the library. */
  static final class Different extends Exception {
    private static final long serialVersionUID = 1L;

    Different(String message) {
      super(message);
    }
  }

  public static void main(String[] arguments) throws IOException {
    BufferedReader steps =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Vectors vector = new Vectors();
    for (String line = steps.readLine(); line != null; line = steps.readLine()) {
      String[] fields = line.split("\t");
      System.out.println(String.join("\t", vector.answered(fields)));
      System.out.flush();
      if (fields[0].equals("end")) {
        vector = new Vectors();
        vector.begin = Cache.stats();
      }
    }
  }

  private List<String> answered(String... fields) {
    List<String> answer = new ArrayList<>(List.of("GCX_SUCCESS"));
    try {
      if (fields[0].equals("end")) {
        closeAll();
        return answer;
      }
      VectorStep step =
          new VectorStep(this, fields[0], Arrays.copyOfRange(fields, 1, fields.length));
      step.run();
      answer.addAll(step.outputs);
      return answer;
    } catch (GcxException problem) {
      return List.of(problem.resultName(), problem.detail().replace('\n', ' '));
    } catch (Exception problem) {
      return List.of("differs", problem.toString());
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
}

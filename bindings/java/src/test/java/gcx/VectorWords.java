package gcx;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Words, numbers and lists of the vectors, in Java. */
final class VectorWords {
  private VectorWords() {}

  static boolean isNumber(String text) {
    return text.matches("\\d+");
  }

  static List<String> items(String list) {
    return list.equals("-") ? List.of() : List.of(list.split(","));
  }

  static String list(Stream<String> items) {
    String joined = items.collect(Collectors.joining(","));
    return joined.isEmpty() ? "-" : joined;
  }

  /** Runs of numbers as FIRST-LAST. */
  static String ids(int... ids) {
    List<String> runs = new ArrayList<>();
    for (int first = 0, next; first < ids.length; first = next) {
      next = first + 1;
      while (next < ids.length && ids[next] == ids[next - 1] + 1) {
        next++;
      }
      runs.add(next - first > 1 ? ids[first] + "-" + ids[next - 1] : String.valueOf(ids[first]));
    }
    return list(runs.stream());
  }

  private static String constant(String word) {
    return word.toUpperCase(Locale.ROOT).replace('-', '_');
  }

  static int type(String word) {
    return isNumber(word)
        ? Integer.parseUnsignedInt(word)
        : ResourceType.valueOf(constant(word)).number;
  }

  static SmFamily family(String word) {
    return SmFamily.valueOf(constant(word));
  }

  static String of(SmFamily family) {
    return family.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  static WorkqueueScope scope(String word) {
    return WorkqueueScope.valueOf(constant(word));
  }

  static String of(WorkqueueScope scope) {
    return scope.name().toLowerCase(Locale.ROOT);
  }

  static SplitOption[] options(String flags) {
    return words(flags).map(SplitOption::valueOf).toArray(SplitOption[]::new);
  }

  static EventOption[] eventOptions(String flags) {
    return words(flags).map(EventOption::valueOf).toArray(EventOption[]::new);
  }

  static ResizeOption[] resizeOptions(String flags) {
    return words(flags).map(ResizeOption::valueOf).toArray(ResizeOption[]::new);
  }

  private static Stream<String> words(String flags) {
    return flags.equals("-")
        ? Stream.of()
        : Arrays.stream(flags.split("\\+")).map(VectorWords::constant);
  }

  /** A count of SMs, or the rest. */
  static long count(String text) {
    return text.equals("rest") ? SmRequest.REST : Long.parseLong(text);
  }

  static List<SmRequest> requests(String list) {
    List<SmRequest> requests = new ArrayList<>();
    for (String item : items(list)) {
      long[] fields = new long[5];
      String[] given = item.split("/");
      for (int i = 0; i < given.length; i++) {
        fields[i] = i == 0 ? count(given[i]) : Long.parseLong(given[i]);
      }
      requests.add(
          new SmRequest(fields[0], fields[1], fields[2], (int) fields[3], (int) fields[4]));
    }
    return requests;
  }
}

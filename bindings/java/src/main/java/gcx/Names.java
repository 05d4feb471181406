package gcx;

import java.util.Map;
import java.util.regex.Pattern;

/** Replaces the names of C in messages by those of this package. */
final class Names {
  private static final Pattern C_NAME = Pattern.compile("\\b(?:gcx|GCX)_\\w+");

  /** A call that messages recommend, with the arguments of C. */
  private static final Pattern MAP_SMS = Pattern.compile("gcx_device_map_sms\\((\\d+), ([1-3])\\)");

  /** Fields of C's parameters, and what has their values here. */
  private static final Map<String, String> FIELDS =
      Map.of(
          "params->min_sm_count", "LeaseRequest.minSmCount",
          "params->exclusive_sm_count", "LeaseRequest.exclusiveSmCount",
          "params->family", "LeaseRequest.family",
          "params->name", "LeaseRequest.name",
          "params->block_threads", "blockThreads",
          "params->argument_bytes", "arguments.remaining()",
          "params->grid", "grid",
          "params->block", "block",
          "min_sm_count", "LeaseRequest.withMinimum");

  private static final Pattern FIELD = Pattern.compile("params->\\w+|\\bmin_sm_count\\b");

  private Names() {}

  static String inJava(String text) {
    String mapped =
        MAP_SMS
            .matcher(text)
            .replaceAll(
                call -> {
                  SmFamily family = SmFamily.of(Integer.parseInt(call.group(2)));
                  return "new Device(" + call.group(1) + ").mapSms(SmFamily." + family + ")";
                });
    String request =
        text.startsWith("gcx_reservation_acquire") ? "ReservationParams" : "LeaseRequest";
    String named =
        FIELD
            .matcher(mapped)
            .replaceAll(
                field ->
                    FIELDS
                        .getOrDefault(field.group(), field.group())
                        .replace("LeaseRequest", request));
    return C_NAME
        .matcher(named)
        .replaceAll(found -> CNames.HERE.getOrDefault(found.group(), found.group()));
  }
}

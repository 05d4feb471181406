package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

/** Converts fields of structs to Java's values. */
abstract class Conversions {
  static String text(byte[] utf8) {
    return utf8 == null ? null : new String(utf8, StandardCharsets.UTF_8);
  }

  static UUID uuid(byte[] bytes) {
    ByteBuffer halves = ByteBuffer.wrap(bytes);
    return new UUID(halves.getLong(), halves.getLong());
  }

  /** Returns the values that have a 1 at their number. */
  static <E extends Enum<E>> Set<E> setOf(E[] values, byte[] members) {
    return Arrays.stream(values)
        .filter(value -> members[value.ordinal()] != 0)
        .collect(Collectors.toUnmodifiableSet());
  }

  /** Returns a count of SMs, empty for GCX_REST. */
  static OptionalInt wanted(long sms) {
    return (int) sms == Raw.GCX_REST ? OptionalInt.empty() : OptionalInt.of((int) sms);
  }

  /** Converts milliseconds since 1970; 0 means never. */
  static Optional<Instant> instantOrNever(long milliseconds) {
    return milliseconds == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(milliseconds));
  }

  /** Returns the numbers of the bits that are set in words of 64 bits. */
  static List<Integer> atomsOf(byte[] words) {
    ByteBuffer bytes = ByteBuffer.wrap(words).order(ByteOrder.nativeOrder());
    return BitSet.valueOf(bytes.asLongBuffer()).stream().boxed().toList();
  }
}

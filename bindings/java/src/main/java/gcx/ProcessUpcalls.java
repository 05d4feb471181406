package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;

/** The part of {@link Upcalls} that makes values of what several processes see. */
abstract class ProcessUpcalls {
  static String text(byte[] utf8) {
    return utf8 == null ? null : new String(utf8, StandardCharsets.UTF_8);
  }

  static UUID uuid(byte[] bytes) {
    ByteBuffer halves = ByteBuffer.wrap(bytes);
    return new UUID(halves.getLong(), halves.getLong());
  }

  static PublishedProcess publishedProcess(
      long process,
      long sinceMs,
      long pid,
      long simulated,
      long driverVersion,
      long devices,
      long leases,
      long unlisted,
      byte[] name) {
    return new PublishedProcess(
        process,
        Instant.ofEpochMilli(sinceMs),
        (int) pid,
        simulated != 0,
        (int) driverVersion,
        (int) devices,
        (int) leases,
        (int) unlisted,
        text(name));
  }

  /** The SMs that something has, or that it waits for: empty for the rest. */
  static OptionalInt wanted(long sms) {
    return (int) sms == Functions.GCX_REST ? OptionalInt.empty() : OptionalInt.of((int) sms);
  }

  static PublishedLease publishedLease(
      long process,
      long id,
      long changes,
      long pid,
      long simulated,
      long device,
      long family,
      long flags,
      long waits,
      long sms,
      long exclusive,
      long streams,
      long deviceSms,
      long atoms,
      long atomSms,
      long lastAtomSms,
      byte[] exclusiveAtoms,
      byte[] sharedAtoms,
      byte[] deviceUuid,
      byte[] name,
      byte[] processName,
      byte[] deviceName) {
    return new PublishedLease(
        process,
        id,
        changes,
        (int) pid,
        simulated != 0,
        (int) device,
        SmFamily.of((int) family),
        (flags & Functions.GCX_LEASE_SHARED) != 0,
        (flags & Functions.GCX_LEASE_OWN_QUEUES) != 0,
        waits != 0,
        wanted(sms),
        (int) exclusive,
        (int) streams,
        (int) deviceSms,
        (int) atoms,
        (int) atomSms,
        (int) lastAtomSms,
        atomsOf(exclusiveAtoms),
        atomsOf(sharedAtoms),
        uuid(deviceUuid),
        text(name),
        text(processName),
        text(deviceName));
  }

  /** The numbers of the bits that are set in the bytes of words of 64 bits. */
  private static List<Integer> atomsOf(byte[] words) {
    ByteBuffer bytes = ByteBuffer.wrap(words).order(ByteOrder.nativeOrder());
    return BitSet.valueOf(bytes.asLongBuffer()).stream().boxed().toList();
  }

  static HoldInfo holdInfo(
      long family,
      long flags,
      long sms,
      long deviceSms,
      long joined,
      long simulated,
      long lost,
      long mps,
      double mpsThreadPercentage,
      long id,
      long sinceMs,
      byte[] atoms,
      byte[] deviceUuid,
      byte[] name) {
    return new HoldInfo(
        SmFamily.of((int) family),
        (int) sms,
        (int) deviceSms,
        joined != 0,
        simulated != 0,
        lost != 0,
        MpsState.of((int) mps),
        mpsThreadPercentage,
        id,
        Instant.ofEpochMilli(sinceMs),
        atomsOf(atoms),
        uuid(deviceUuid),
        text(name));
  }

  static LiveHold liveHold(
      long id,
      long sinceMs,
      long untilMs,
      long pid,
      long user,
      long simulated,
      long waits,
      long family,
      long sms,
      long deviceSms,
      long atomCount,
      long atomSms,
      long lastAtomSms,
      long mps,
      double mpsThreadPercentage,
      long parent,
      byte[] atoms,
      byte[] deviceUuid,
      byte[] name,
      byte[] processName,
      byte[] deviceName) {
    return new LiveHold(
        id,
        Instant.ofEpochMilli(sinceMs),
        untilMs == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(untilMs)),
        (int) pid,
        user,
        simulated != 0,
        waits != 0,
        SmFamily.of((int) family),
        wanted(sms),
        (int) deviceSms,
        (int) atomCount,
        (int) atomSms,
        (int) lastAtomSms,
        MpsState.of((int) mps),
        mpsThreadPercentage,
        parent == 0 ? OptionalLong.empty() : OptionalLong.of(parent),
        atomsOf(atoms),
        uuid(deviceUuid),
        text(name),
        text(processName),
        text(deviceName));
  }

  static MpsInfo mpsInfo(long state, double threadPercentage) {
    return new MpsInfo(MpsState.of((int) state), threadPercentage);
  }
}

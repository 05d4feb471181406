package gcx;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/**
 * What the library calls: it makes values of structs and exceptions of results, and gives out
 * diagnostics. Numbers come as long, text as UTF-8.
 */
abstract class Upcalls {
  static volatile LogReceiver receiver;

  static String text(byte[] utf8) {
    return utf8 == null ? null : new String(utf8, StandardCharsets.UTF_8);
  }

  static byte[] bytes(String text) {
    if (text == null) {
      return null;
    }
    if (text.indexOf('\0') >= 0) {
      throw new GcxException.InvalidValue("a name can't hold the character 0");
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static GcxException error(int code, byte[] name, byte[] detail) {
    return GcxException.of(code, text(name), text(detail));
  }

  static void message(int level, byte[] text) {
    LogReceiver wanted = receiver;
    if (wanted == null) {
      return;
    }
    try {
      wanted.log(LogLevel.of(level), text(text));
    } catch (Throwable thrown) {
      // The call in which this came has succeeded, or fails with an exception of its own.
      Thread thread = Thread.currentThread();
      thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
    }
  }

  static DriverInfo driverInfo(long version, long headers, long simulated, byte[] library) {
    return new DriverInfo((int) version, (int) headers, simulated != 0, text(library));
  }

  static CapabilityInfo capabilityInfo(long available, long requiredVersion, byte[] name) {
    return new CapabilityInfo(available != 0, (int) requiredVersion, text(name));
  }

  static DeviceInfo deviceInfo(
      long major,
      long minor,
      long sms,
      long least,
      long alignment,
      long domains,
      byte[] name,
      byte[] uuid) {
    ByteBuffer halves = ByteBuffer.wrap(uuid);
    return new DeviceInfo(
        text(name),
        (int) major,
        (int) minor,
        (int) sms,
        (int) least,
        (int) alignment,
        (int) domains,
        new UUID(halves.getLong(), halves.getLong()));
  }

  static ResourceInfo resourceInfo(
      long type,
      long device,
      long family,
      long sms,
      long atoms,
      long least,
      long alignment,
      long flags,
      long domain,
      long scope,
      long limit) {
    return new ResourceInfo(
        ResourceType.of((int) type),
        (int) device,
        SmFamily.of((int) family),
        (int) sms,
        (int) atoms,
        (int) least,
        (int) alignment,
        (int) flags,
        (int) domain,
        WorkqueueScope.of((int) scope),
        (int) limit);
  }

  static ContextInfo contextInfo(long device, long sms, long streams, long id) {
    return new ContextInfo((int) device, (int) sms, (int) streams, id);
  }

  static StreamInfo streamInfo(long device, long priority, long sms, long contextId) {
    return new StreamInfo((int) device, (int) priority, (int) sms, contextId);
  }

  static CacheStats cacheStats(
      long limit, long inUse, long kept, long hits, long misses, long evicted, long lost) {
    return new CacheStats((int) limit, (int) inUse, (int) kept, hits, misses, evicted, lost);
  }

  static LeaseInfo leaseInfo(
      long device,
      long family,
      long flags,
      long sms,
      long exclusive,
      long streams,
      long id,
      long changes,
      byte[] name) {
    return new LeaseInfo(
        (int) device,
        SmFamily.of((int) family),
        flags != 0,
        (int) sms,
        (int) exclusive,
        (int) streams,
        id,
        changes,
        text(name));
  }

  static LiveLease liveLease(
      long id,
      long device,
      long family,
      long flags,
      long sms,
      long exclusive,
      long streams,
      long waits,
      byte[] name,
      byte[] resource) {
    return new LiveLease(
        id,
        (int) device,
        SmFamily.of((int) family),
        flags != 0,
        (int) sms,
        (int) exclusive,
        (int) streams,
        waits != 0,
        text(name),
        new SmResource(resource));
  }

  static LiveContext liveContext(
      long id, long device, long sms, long handles, long streams, long flags, byte[] resource) {
    return new LiveContext(
        id,
        (int) device,
        (int) sms,
        (int) handles,
        (int) streams,
        flags != 0,
        new SmResource(resource));
  }
}

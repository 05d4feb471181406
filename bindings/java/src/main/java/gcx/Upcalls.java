package gcx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
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
      throw new GcxException.InvalidValue("a name or path can't hold the character 0");
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
    return new DeviceInfo(
        text(name),
        (int) major,
        (int) minor,
        (int) sms,
        (int) least,
        (int) alignment,
        (int) domains,
        uuid(uuid));
  }

  private static UUID uuid(byte[] bytes) {
    ByteBuffer halves = ByteBuffer.wrap(bytes);
    return new UUID(halves.getLong(), halves.getLong());
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

  static ContextInfo contextInfo(long device, long sms, long streams, long id, long bytes) {
    return new ContextInfo((int) device, (int) sms, (int) streams, id, bytes);
  }

  static StreamInfo streamInfo(long device, long priority, long sms, long contextId) {
    return new StreamInfo((int) device, (int) priority, (int) sms, contextId);
  }

  static CacheStats cacheStats(
      long limit,
      long inUse,
      long kept,
      long hits,
      long misses,
      long evicted,
      long lost,
      long prepared,
      long makingNs,
      long longestMakingNs,
      long bytesInUse,
      long bytesKept,
      long memoryLimit,
      long keptStreams) {
    return new CacheStats(
        (int) limit,
        (int) inUse,
        (int) kept,
        hits,
        misses,
        evicted,
        lost,
        prepared,
        Duration.ofNanos(makingNs),
        Duration.ofNanos(longestMakingNs),
        bytesInUse,
        bytesKept,
        memoryLimit < 0 ? Cache.NO_MEMORY_LIMIT : memoryLimit,
        (int) keptStreams);
  }

  static CacheTrimmed cacheTrimmed(
      long contexts, long streams, long contextsLeft, long streamsLeft, long bytes) {
    return new CacheTrimmed(
        (int) contexts, (int) streams, (int) contextsLeft, (int) streamsLeft, bytes);
  }

  static void progress(Preparing preparing, int done, int count) {
    preparing.tell(done, count);
  }

  static KernelFit kernelFit(
      long sms, long blocksPerSm, long blocks, long clusters, long clusterBlocks) {
    return new KernelFit(
        (int) sms, (int) blocksPerSm, (int) blocks, (int) clusters, (int) clusterBlocks);
  }

  static QueueInfo queueInfo(
      long connections, long source, long started, long certain, long tooFew) {
    return new QueueInfo(
        (int) connections, QueueSource.of((int) source), started != 0, certain != 0, tooFew != 0);
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
        (flags & Functions.GCX_LEASE_SHARED) != 0,
        (flags & Functions.GCX_LEASE_OWN_QUEUES) != 0,
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
        (flags & Functions.GCX_LEASE_SHARED) != 0,
        (flags & Functions.GCX_LEASE_OWN_QUEUES) != 0,
        (int) sms,
        (int) exclusive,
        (int) streams,
        waits != 0,
        text(name),
        new SmResource(resource));
  }

  static LiveContext liveContext(
      long id,
      long device,
      long sms,
      long handles,
      long streams,
      long flags,
      long bytes,
      byte[] resource) {
    return new LiveContext(
        id,
        (int) device,
        (int) sms,
        (int) handles,
        (int) streams,
        (flags & Functions.GCX_CONTEXT_PRIVATE) != 0,
        bytes,
        new SmResource(resource));
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
        (int) sms,
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
        (int) sms,
        (int) deviceSms,
        (int) atomCount,
        (int) atomSms,
        (int) lastAtomSms,
        MpsState.of((int) mps),
        mpsThreadPercentage,
        atomsOf(atoms),
        uuid(deviceUuid),
        text(name),
        text(processName),
        text(deviceName));
  }

  static MpsInfo mpsInfo(long state, double threadPercentage) {
    return new MpsInfo(MpsState.of((int) state), threadPercentage);
  }

  static GraphInfo graphInfo(
      long device,
      long flags,
      long nodes,
      long kernels,
      long parts,
      long executables,
      long maxExecutables,
      long launches,
      long made,
      long evicted) {
    return new GraphInfo(
        (int) device,
        (flags & Functions.GCX_GRAPH_NODE_PRIORITIES) != 0,
        (int) nodes,
        (int) kernels,
        (int) parts,
        (int) executables,
        (int) maxExecutables,
        launches,
        made,
        evicted);
  }

  static GraphNode graphNode(
      long kind,
      long parent,
      long part,
      long cooperative,
      long gridX,
      long gridY,
      long gridZ,
      long blockX,
      long blockY,
      long blockZ,
      long clusterX,
      long clusterY,
      long clusterZ,
      long sharedBytes,
      long blocksPerSm,
      byte[] name) {
    return new GraphNode(
        GraphNodeKind.of((int) kind),
        (int) parent,
        (int) part,
        cooperative != 0,
        new Dim((int) gridX, (int) gridY, (int) gridZ),
        new Dim((int) blockX, (int) blockY, (int) blockZ),
        new Dim((int) clusterX, (int) clusterY, (int) clusterZ),
        (int) sharedBytes,
        (int) blocksPerSm,
        text(name));
  }
}

package gcx;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.ObjIntConsumer;

/**
 * What the library calls: it makes values of structs and exceptions of results, and gives out
 * diagnostics. Whole numbers come as long, text as UTF-8.
 */
abstract class Upcalls extends ProcessUpcalls {
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

  /** A receiver as the classes of another class loader can call it. */
  static ObjIntConsumer<byte[]> shared(LogReceiver receiver) {
    return (text, level) -> receiver.log(LogLevel.of(level), text(text));
  }

  /** The receiver may be of another class loader. */
  static void message(ObjIntConsumer<byte[]> receiver, int level, byte[] text) {
    if (WaitThread.keeps(receiver, level, text)) {
      return;
    }
    try {
      receiver.accept(text, level);
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
        wanted(sms),
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
        (flags & Functions.GCX_CONTEXT_PRIVATE) != 0,
        new SmResource(resource));
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

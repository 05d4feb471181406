package gcx;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** One step of a vector: reads its inputs and collects its outputs. */
final class VectorStep {
  /** Words of the vectors that Java's constants don't have. */
  private static final Map<String, String> CONSTANTS =
      Map.of("UNLEASED", "EXCLUDE_LEASED", "AT_ONCE", "DEFERRED");

  private final Vectors vector;
  private final String operation;
  private final String[] inputs;
  final List<String> outputs = new ArrayList<>();
  private int read;

  VectorStep(Vectors vector, String operation, String[] inputs) {
    this.vector = vector;
    this.operation = operation;
    this.inputs = inputs;
  }

  // Words, numbers and lists

  private String text() {
    return inputs[read++];
  }

  private int number() {
    String text = text();
    return text.startsWith("-") ? Integer.parseInt(text) : Integer.parseUnsignedInt(text);
  }

  private static long count(String text) {
    return text.equals("rest") ? SmRequest.REST : Long.parseLong(text);
  }

  private static <E extends Enum<E>> E constant(Class<E> type, String word) {
    String name = word.toUpperCase(Locale.ROOT).replace('-', '_');
    return Enum.valueOf(type, CONSTANTS.getOrDefault(name, name));
  }

  private static String word(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  private static <E extends Enum<E>> E[] options(
      Class<E> type, IntFunction<E[]> array, String flags) {
    List<String> words = flags.equals("-") ? List.of() : List.of(flags.split("\\+"));
    return words.stream().map(word -> constant(type, word)).toArray(array);
  }

  private static List<String> items(String list) {
    return list.equals("-") ? List.of() : List.of(list.split(","));
  }

  private static String list(java.util.stream.Stream<?> items) {
    String joined = items.map(String::valueOf).collect(Collectors.joining(","));
    return joined.isEmpty() ? "-" : joined;
  }

  // Objects

  private Device device() {
    return new Device(number());
  }

  private Object object() {
    return find(text());
  }

  private Object find(String name) {
    Object found = vector.objects.get(name);
    if (found == null) {
      throw new IllegalArgumentException("there is no " + name);
    }
    return found;
  }

  /** Takes any resource for one of SMs: the library refuses those that are not. */
  private static SmResource sms(Object resource) {
    return new SmResource(((Resource) resource).bytes);
  }

  private static Resource resource(Stream of, String type) {
    return switch (type) {
      case "sm" -> of.sms();
      case "workqueue" -> of.workqueue();
      default -> of.workqueueConfiguration();
    };
  }

  private static Resource resource(Context of, String type) {
    return switch (type) {
      case "sm" -> of.sms();
      case "workqueue" -> of.workqueue();
      default -> of.workqueueConfiguration();
    };
  }

  private List<LeaseSize> sizes(String list) {
    List<LeaseSize> sizes = new ArrayList<>();
    for (String item : items(list)) {
      String[] parts = item.split("/");
      long count = parts[1].equals("parked") ? LeaseSize.PARKED : count(parts[1]);
      sizes.add(new LeaseSize((Lease) find(parts[0]), count));
    }
    return sizes;
  }

  private static List<SmRequest> requests(String list) {
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

  private void give(Object... values) {
    for (Object value : values) {
      outputs.add(String.valueOf(value));
    }
  }

  private void keep(String name, Object object) {
    vector.objects.put(name, object);
  }

  // Operations

  void run() throws Exception {
    switch (operation) {
      case "open" -> Gcx.openDriver(text());
      case "driver" -> give(Gcx.driver().version(), Gcx.driver().simulated() ? 1 : 0);
      case "capability" ->
          give(Gcx.driver().capabilities().contains(Capability.of(number())) ? 1 : 0);
      case "devices" -> give(Device.count());
      case "device" -> {
        DeviceInfo info = device().info();
        give(
            info.computeCapabilityMajor(),
            info.computeCapabilityMinor(),
            info.smCount(),
            info.name());
      }
      case "priorities" -> {
        StreamPriorityRange range = device().streamPriorityRange();
        give(range.least(), range.greatest());
      }
      case "limit" -> Cache.setLimit(number());
      case "trim" -> give(Cache.trim(number()).contexts());
      case "ahead" -> Cache.prepare(items(text()).stream().map(name -> sms(find(name))).toList());
      case "cache" -> {
        CacheStats now = Cache.stats();
        CacheStats begin = vector.begin;
        give(now.inUse(), now.cached(), now.hits() - begin.hits());
        give(now.misses() - begin.misses(), now.evicted() - begin.evicted());
      }
      case "live" -> {
        int device = number();
        List<LiveContext> live = device == -1 ? Context.live() : Context.live(new Device(device));
        give(list(live.stream().map(VectorStep::described)));
      }
      case "leases" -> {
        int device = number();
        List<LiveLease> live = device == -1 ? Lease.live() : Lease.live(new Device(device));
        give(list(live.stream().map(VectorStep::described)));
      }
      default -> runWithLeases();
    }
  }

  private static String described(LiveContext one) {
    int flags = one.isPrivate() ? 1 : 0;
    return one.smCount() + "/" + one.handleCount() + "/" + one.streamCount() + "/" + flags;
  }

  private static String described(LiveLease one) {
    int flags = one.isShared() ? 1 : 0;
    return one.smCount().orElseThrow() + "/" + one.streamCount() + "/" + flags;
  }

  private void runWithLeases() throws Exception {
    switch (operation) {
      case "lease" -> acquire();
      case "resize" -> {
        String list = text();
        String flags = text();
        List<LeaseSize> sizes = sizes(list);
        Lease.resize(sizes, options(ResizeOption.class, ResizeOption[]::new, flags));
        give(list(sizes.stream().map(size -> size.lease().smCount())));
      }
      case "prepare" -> Lease.prepare(sizes(text()));
      case "held" -> {
        Lease of = (Lease) object();
        String name = text();
        SmResource sms = of.sms();
        give(sms.smCount());
        keep(name, sms);
      }
      case "alone" -> give(((Lease) object()).info().exclusiveSmCount());
      default -> runWithResources();
    }
  }

  private void acquire() {
    Device device = device();
    long count = count(text());
    String flags = text();
    String family = text();
    long minimum = Integer.toUnsignedLong(number());
    long exclusive = Integer.toUnsignedLong(number());
    String name = text();
    Lease lease =
        device.acquire(
            new LeaseRequest(
                count,
                minimum,
                flags.equals("shared"),
                exclusive,
                false,
                constant(SmFamily.class, family),
                Duration.ZERO,
                null,
                name));
    give(lease.smCount());
    keep(name, lease);
  }

  private void runWithResources() throws Exception {
    switch (operation) {
      case "resource" -> {
        Device device = device();
        String type = text();
        keep(text(), type.equals("sm") ? device.sms() : device.workqueue());
      }
      case "info" -> {
        ResourceInfo info = ((Resource) object()).info();
        give(info.device(), word(info.family()).replace('_', '-'), info.smCount());
        give(info.atomCount(), info.minPartitionSize(), info.coscheduledAlignment(), info.flags());
        boolean domain = (info.flags() & SmRequest.LOCALITY_DOMAIN_ID) != 0;
        give(domain ? Integer.toUnsignedString(info.localityDomainId()) : "-");
      }
      case "queue" -> {
        WorkqueueResource queue = (WorkqueueResource) object();
        give(queue.device().ordinal(), word(queue.scope()), queue.concurrencyLimit());
      }
      case "configure" -> {
        WorkqueueResource queue = new WorkqueueResource(((Resource) object()).bytes);
        String scope = text();
        int limit = number();
        keep(text(), queue.configured(constant(WorkqueueScope.class, scope), limit));
      }
      case "split" -> split();
      case "union" -> set(SmResource::union);
      case "subtract" -> set(SmResource::subtract);
      case "overlap" -> give(sms(object()).overlap(sms(object())));
      case "same" -> {
        Object a = object();
        Object b = object();
        boolean same =
            a instanceof Context context
                ? context.info().id() == ((Context) b).info().id()
                : a.equals(b);
        give(same ? "yes" : "no");
      }
      case "atom" -> {
        SmResource of = sms(object());
        int index = number();
        String name = text();
        SmResource atom = of.atoms().get(index);
        give(atom.smCount());
        keep(name, atom);
      }
      case "map" -> device().mapSms(constant(SmFamily.class, text()));
      case "sms" -> give(list(IntStream.of(sms(object()).smIds()).boxed()));
      default -> runWithObjects();
    }
  }

  private void set(BinaryOperator<SmResource> operator) {
    SmResource first = sms(object());
    SmResource second = sms(object());
    String name = text();
    SmResource result = operator.apply(first, second);
    keep(name, result);
    give(result.smCount());
  }

  private void split() throws Exception {
    SmResource of = sms(object());
    String flags = text();
    String list = text();
    String name = text();
    List<SmRequest> requests = requests(list);
    SplitOption[] options = options(SplitOption.class, SplitOption[]::new, flags);
    Plan plan = null;
    GcxException refused = null;
    try {
      plan = of.plan(requests, options);
    } catch (GcxException problem) {
      refused = problem;
    }
    Split split = of.split(requests, options);
    List<Integer> counts = split.groups().stream().map(SmResource::smCount).toList();
    if (!new Plan(counts, split.remainder().smCount()).equals(plan)) {
      throw new Vectors.Different(
          "the plan is " + plan + " or " + refused + ", the split " + counts);
    }
    for (int i = 0; i < counts.size(); i++) {
      keep(name + "." + i, split.groups().get(i));
    }
    keep(name + ".rest", split.remainder());
    give(list(counts.stream()), plan.remainder());
  }

  private void runWithObjects() throws Exception {
    switch (operation) {
      case "context" -> {
        Resource[] parts = items(text()).stream().map(this::find).toArray(Resource[]::new);
        String flags = text();
        keep(
            text(), flags.equals("private") ? Context.createPrivate(parts) : Context.create(parts));
      }
      case "get" -> {
        Object of = object();
        String type = text();
        keep(
            text(),
            of instanceof Stream stream ? resource(stream, type) : resource((Context) of, type));
      }
      case "stream" -> {
        Object of = object();
        int priority = number();
        String name = text();
        Stream stream =
            of instanceof Lease lease
                ? lease.createStream(priority)
                : ((Context) of).createStream(priority);
        keep(name, stream);
        give(stream.info().device(), stream.info().priority(), stream.smCount());
      }
      case "event" -> {
        Device device = device();
        String flags = text();
        keep(text(), Event.create(device, options(EventOption.class, EventOption[]::new, flags)));
      }
      case "adopt" -> {
        Object of = object();
        keep(
            text(),
            of instanceof Stream stream
                ? Stream.fromNative(stream.nativeHandle())
                : Event.fromNative(((Event) of).nativeHandle()));
      }
      case "cluster" -> give(sms(object()).maxClusterSize());
      case "probe" -> give(list(IntStream.of(((Stream) object()).probeSms()).boxed()));
      case "close" -> ((AutoCloseable) object()).close();
      case "push" -> {
        String name = text();
        vector.pushed.push(Map.entry(name, ((Context) find(name)).push()));
      }
      case "pop" -> {
        if (vector.pushed.isEmpty()) {
          Functions.gcx_context_pop();
        }
        vector.pushed.peek().getValue().close();
        give(vector.pushed.pop().getKey());
      }
      case "current" -> {
        Object context = Context.current().orElse(null);
        give(
            vector.objects.entrySet().stream()
                .filter(entry -> entry.getValue() == context)
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse("-"));
      }
      default -> runWithWork();
    }
  }

  private void runWithWork() {
    Object of = object();
    switch (operation) {
      case "record" -> {
        Event event = (Event) object();
        if (of instanceof Stream stream) {
          stream.record(event);
        } else {
          ((Context) of).record(event);
        }
      }
      case "wait" -> {
        Event event = (Event) object();
        if (of instanceof Stream stream) {
          stream.waitFor(event);
        } else {
          ((Context) of).waitFor(event);
        }
      }
      case "synchronize" -> {
        if (of instanceof Stream stream) {
          stream.synchronize();
        } else if (of instanceof Lease lease) {
          lease.synchronize();
        } else if (of instanceof Context context) {
          context.synchronize();
        } else {
          ((Event) of).synchronize();
        }
      }
      case "query" -> {
        boolean done =
            of instanceof Stream stream
                ? stream.isDone()
                : of instanceof Lease lease ? lease.isDone() : ((Event) of).isDone();
        if (!done) {
          throw new GcxException.NotReady("the work has not finished");
        }
      }
      case "elapsed" -> ((Event) object()).millisecondsSince((Event) of);
      default -> throw new IllegalArgumentException(operation + ": no such operation");
    }
  }
}

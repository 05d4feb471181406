package gcx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Answers the steps of vectors for tests/vectors/ask.py; see the README there. */
final class Vectors {
  private final Map<String, Object> objects = new LinkedHashMap<>();
  private final Deque<Map.Entry<String, Context.Pushed>> pushed = new ArrayDeque<>();
  private CacheStats begin;

  /** The step's operation and inputs. The last input of one that creates an object is its name. */
  private String[] fields;

  private List<String> outputs;

  public static void main(String[] arguments) throws IOException {
    BufferedReader steps =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Vectors vector = new Vectors();
    for (String line = steps.readLine(); line != null; line = steps.readLine()) {
      System.out.println(String.join("\t", vector.answered(line)));
      System.out.flush();
      if (line.equals("end")) {
        vector = new Vectors();
        vector.begin = Cache.stats();
      }
    }
  }

  private List<String> answered(String line) {
    fields = line.split("\t");
    outputs = new ArrayList<>(List.of("GCX_SUCCESS"));
    try {
      run();
      return outputs;
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
      throw new IllegalStateException("contexts are alive at the end: " + Context.live());
    }
  }

  // Words, numbers and lists

  private int number(int field) {
    return number(fields[field]);
  }

  private static int number(String text) {
    return text.startsWith("-") ? Integer.parseInt(text) : Integer.parseUnsignedInt(text);
  }

  private static long count(String text) {
    return text.equals("rest") ? SmRequest.REST : Long.parseLong(text);
  }

  private static <E extends Enum<E>> E constant(Class<E> type, String word) {
    return Enum.valueOf(type, word.toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  private static String word(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  private static <E extends Enum<E>> E[] options(
      Class<E> type, IntFunction<E[]> array, String flags) {
    List<String> words = flags.equals("-") ? List.of() : List.of(flags.split("\\+"));
    return words.stream().map(word -> constant(type, word)).toArray(array);
  }

  private java.util.stream.Stream<String> items(int field) {
    return fields[field].equals("-")
        ? java.util.stream.Stream.of()
        : java.util.stream.Stream.of(fields[field].split(","));
  }

  private static String list(java.util.stream.Stream<?> items) {
    String joined = items.map(String::valueOf).collect(Collectors.joining(","));
    return joined.isEmpty() ? "-" : joined;
  }

  private static int bit(boolean value) {
    return value ? 1 : 0;
  }

  private void give(Object... values) {
    for (Object value : values) {
      outputs.add(String.valueOf(value));
    }
  }

  // Objects

  private <T> T keep(T object) {
    objects.put(fields[fields.length - 1], object);
    return object;
  }

  private Object find(String name) {
    Object found = objects.get(name);
    if (found == null) {
      throw new IllegalArgumentException("there is no " + name);
    }
    return found;
  }

  private Object object(int field) {
    return find(fields[field]);
  }

  private Device device(int field) {
    return new Device(number(field));
  }

  /** Takes any resource for one of SMs: the library refuses those that are not. */
  private static SmResource sms(Object resource) {
    return new SmResource(((Resource) resource).bytes);
  }

  private SmResource sms(int field) {
    return sms(object(field));
  }

  private LeaseSize size(String item) {
    String[] parts = item.split("/");
    long count = parts[1].equals("parked") ? LeaseSize.PARKED : count(parts[1]);
    return new LeaseSize((Lease) find(parts[0]), count);
  }

  private static SmRequest request(String item) {
    String[] given = item.split("/");
    int[] more = new int[5];
    for (int i = 1; i < given.length; i++) {
      more[i] = number(given[i]);
    }
    return new SmRequest(count(given[0]), more[1], more[2], more[3], more[4]);
  }

  // Operations

  private void run() throws Exception {
    switch (fields[0]) {
      case "end" -> closeAll();
      case "open" -> Gcx.openDriver(fields[1]);
      case "driver" -> give(Gcx.driver().version(), bit(Gcx.driver().simulated()));
      case "capability" ->
          give(bit(Gcx.driver().capabilities().contains(Capability.of(number(1)))));
      case "devices" -> give(Device.count());
      case "device" -> {
        DeviceInfo info = device(1).info();
        give(info.computeCapabilityMajor(), info.computeCapabilityMinor());
        give(info.smCount(), info.name());
      }
      case "priorities" -> {
        StreamPriorityRange range = device(1).streamPriorityRange();
        give(range.least(), range.greatest());
      }
      case "limit" -> Cache.setLimit(number(1));
      case "trim" -> give(Cache.trim(number(1)).contexts());
      case "ahead" -> Cache.prepare(items(1).map(name -> sms(find(name))).toList());
      case "cache" -> {
        CacheStats now = Cache.stats();
        give(now.inUse(), now.cached(), now.hits() - begin.hits());
        give(now.misses() - begin.misses(), now.evicted() - begin.evicted());
      }
      case "live" -> {
        List<LiveContext> live = fields[1].equals("-1") ? Context.live() : Context.live(device(1));
        give(
            list(
                live.stream()
                    .map(
                        of ->
                            of.smCount()
                                + "/"
                                + of.handleCount()
                                + "/"
                                + of.streamCount()
                                + "/"
                                + bit(of.isPrivate()))));
      }
      case "leases" -> {
        List<LiveLease> live = fields[1].equals("-1") ? Lease.live() : Lease.live(device(1));
        give(
            list(
                live.stream()
                    .map(
                        of ->
                            of.smCount().orElseThrow()
                                + "/"
                                + of.streamCount()
                                + "/"
                                + bit(of.isShared()))));
      }
      case "lease" -> {
        LeaseRequest request =
            new LeaseRequest(
                count(fields[2]),
                Integer.toUnsignedLong(number(5)),
                fields[3].equals("shared"),
                Integer.toUnsignedLong(number(6)),
                false,
                constant(SmFamily.class, fields[4]),
                Duration.ZERO,
                null,
                fields[7]);
        give(keep(device(1).acquire(request)).smCount());
      }
      case "resize" -> {
        List<LeaseSize> sizes = items(1).map(this::size).toList();
        Lease.resize(sizes, options(ResizeOption.class, ResizeOption[]::new, fields[2]));
        give(list(sizes.stream().map(size -> size.lease().smCount())));
      }
      case "prepare" -> Lease.prepare(items(1).map(this::size).toList());
      case "held" -> give(keep(((Lease) object(1)).sms()).smCount());
      case "alone" -> give(((Lease) object(1)).info().exclusiveSmCount());
      case "resource" -> keep(fields[2].equals("sm") ? device(1).sms() : device(1).workqueue());
      case "info" -> {
        ResourceInfo info = ((Resource) object(1)).info();
        give(info.device(), word(info.family()).replace('_', '-'), info.smCount());
        give(info.atomCount(), info.minPartitionSize(), info.coscheduledAlignment(), info.flags());
        boolean domain = (info.flags() & SmRequest.LOCALITY_DOMAIN_ID) != 0;
        give(domain ? Integer.toUnsignedString(info.localityDomainId()) : "-");
      }
      case "queue" -> {
        WorkqueueResource queue = (WorkqueueResource) object(1);
        give(queue.device().ordinal(), word(queue.scope()), queue.concurrencyLimit());
      }
      case "configure" -> {
        WorkqueueResource queue = new WorkqueueResource(((Resource) object(1)).bytes);
        keep(queue.configured(constant(WorkqueueScope.class, fields[2]), number(3)));
      }
      case "split" -> split();
      case "union" -> give(keep(sms(1).union(sms(2))).smCount());
      case "subtract" -> give(keep(sms(1).subtract(sms(2))).smCount());
      case "overlap" -> give(sms(1).overlap(sms(2)));
      case "same" -> {
        boolean same =
            object(1) instanceof Context context
                ? context.info().id() == ((Context) object(2)).info().id()
                : object(1).equals(object(2));
        give(same ? "yes" : "no");
      }
      case "atom" -> give(keep(sms(1).atoms().get(number(2))).smCount());
      case "map" -> device(1).mapSms(constant(SmFamily.class, fields[2]));
      case "sms" -> give(list(IntStream.of(sms(1).smIds()).boxed()));
      case "cluster" -> give(sms(1).maxClusterSize());
      case "context" -> {
        Resource[] parts = items(1).map(this::find).toArray(Resource[]::new);
        keep(fields[2].equals("private") ? Context.createPrivate(parts) : Context.create(parts));
      }
      case "event" ->
          keep(Event.create(device(1), options(EventOption.class, EventOption[]::new, fields[2])));
      case "push" -> pushed.push(Map.entry(fields[1], ((Context) object(1)).push()));
      case "pop" -> {
        if (pushed.isEmpty()) {
          Functions.gcx_context_pop();
        }
        pushed.peek().getValue().close();
        give(pushed.pop().getKey());
      }
      case "current" -> {
        Object current = Context.current().orElse(null);
        give(
            objects.keySet().stream()
                .filter(name -> objects.get(name) == current)
                .findFirst()
                .orElse("-"));
      }
      case "probe" -> give(list(IntStream.of(((Stream) object(1)).probeSms()).boxed()));
      case "elapsed" -> ((Event) object(2)).millisecondsSince((Event) object(1));
      case "close" -> ((AutoCloseable) object(1)).close();
      default -> {
        if (object(1) instanceof Context context) {
          runWith(context);
        } else if (object(1) instanceof Stream stream) {
          runWith(stream);
        } else if (object(1) instanceof Lease lease) {
          runWith(lease);
        } else {
          runWith((Event) object(1));
        }
      }
    }
  }

  private void split() {
    SplitOption[] options = options(SplitOption.class, SplitOption[]::new, fields[2]);
    List<SmRequest> requests = items(3).map(Vectors::request).toList();
    Object plan;
    try {
      plan = sms(1).plan(requests, options);
    } catch (GcxException refused) {
      plan = refused;
    }
    Split split = sms(1).split(requests, options);
    List<Integer> counts = split.groups().stream().map(SmResource::smCount).toList();
    Plan given = new Plan(counts, split.remainder().smCount());
    if (!given.equals(plan)) {
      throw new IllegalStateException("the plan is " + plan + ", the split " + given);
    }
    for (int i = 0; i < counts.size(); i++) {
      objects.put(fields[4] + "." + i, split.groups().get(i));
    }
    objects.put(fields[4] + ".rest", split.remainder());
    give(list(counts.stream()), given.remainder());
  }

  private void runWith(Context context) {
    switch (fields[0]) {
      case "get" ->
          keep(
              switch (fields[2]) {
                case "sm" -> context.sms();
                case "workqueue" -> context.workqueue();
                default -> context.workqueueConfiguration();
              });
      case "stream" -> describe(keep(context.createStream(number(2))));
      case "record" -> context.record((Event) object(2));
      case "wait" -> context.waitFor((Event) object(2));
      case "synchronize" -> context.synchronize();
      default -> throw noSuchOperation();
    }
  }

  private void runWith(Stream stream) {
    switch (fields[0]) {
      case "get" ->
          keep(
              switch (fields[2]) {
                case "sm" -> stream.sms();
                case "workqueue" -> stream.workqueue();
                default -> stream.workqueueConfiguration();
              });
      case "adopt" -> keep(Stream.fromNative(stream.nativeHandle()));
      case "record" -> stream.record((Event) object(2));
      case "wait" -> stream.waitFor((Event) object(2));
      case "synchronize" -> stream.synchronize();
      case "query" -> query(stream.isDone());
      default -> throw noSuchOperation();
    }
  }

  private void runWith(Lease lease) {
    switch (fields[0]) {
      case "stream" -> describe(keep(lease.createStream(number(2))));
      case "synchronize" -> lease.synchronize();
      case "query" -> query(lease.isDone());
      default -> throw noSuchOperation();
    }
  }

  private void runWith(Event event) {
    switch (fields[0]) {
      case "adopt" -> keep(Event.fromNative(event.nativeHandle()));
      case "synchronize" -> event.synchronize();
      case "query" -> query(event.isDone());
      default -> throw noSuchOperation();
    }
  }

  private void describe(Stream stream) {
    give(stream.info().device(), stream.info().priority(), stream.smCount());
  }

  private static void query(boolean done) {
    if (!done) {
      throw new GcxException.NotReady("the work has not finished");
    }
  }

  private IllegalArgumentException noSuchOperation() {
    return new IllegalArgumentException(String.join(" ", fields) + ": no such operation");
  }
}

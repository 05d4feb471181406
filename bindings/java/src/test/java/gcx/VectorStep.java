package gcx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A step: takes its inputs one after another, and gathers its outputs. */
final class VectorStep {
  private final Vectors vector;
  private final String operation;
  private final String[] inputs;
  final List<String> outputs = new ArrayList<>();

  /** How many inputs were. */
  int taken;

  VectorStep(Vectors vector, String operation, String[] inputs) {
    this.vector = vector;
    this.operation = operation;
    this.inputs = inputs;
  }

  String text() {
    return inputs[taken++];
  }

  int number() {
    String text = text();
    return text.startsWith("-") ? Integer.parseInt(text) : Integer.parseUnsignedInt(text);
  }

  Device device() {
    return new Device(number());
  }

  Object object() {
    return find(text());
  }

  Object find(String name) {
    if (name.equals("zero")) {
      return new SmResource(new byte[Resource.SIZE]);
    }
    Object found = vector.objects.get(name);
    if (found == null) {
      throw new IllegalArgumentException("there is no " + name);
    }
    return found;
  }

  /** An SM resource to call a method of, whatever it is of: the library tells. */
  private SmResource sms() {
    return new SmResource(((Resource) object()).bytes);
  }

  void give(Object output) {
    outputs.add(String.valueOf(output));
  }

  /** What a step makes is named by its last input. */
  void keep(String name, Object made) {
    vector.objects.put(name, made);
  }

  private Resource resource(byte[] bytes) {
    SmResource any = new SmResource(bytes);
    return any.info().type() == ResourceType.SM ? any : new WorkqueueResource(bytes);
  }

  void give() throws Exception {
    switch (operation) {
      case "open" -> Gcx.openDriver(text());
      case "driver" -> {
        give(Gcx.driver().version());
        give(Gcx.driver().simulated() ? 1 : 0);
      }
      case "capability" -> {
        int number = number();
        boolean known = number < Capability.values().length;
        CapabilityInfo info =
            known
                ? Gcx.capability(Capability.of(number))
                : Functions.gcx_capability_get_info(number);
        give(info.available() ? 1 : 0);
      }
      case "devices" -> give(Device.count());
      case "device" -> {
        DeviceInfo info = device().info();
        give(info.computeCapabilityMajor());
        give(info.computeCapabilityMinor());
        give(info.smCount());
        give(info.name());
      }
      case "priorities" -> {
        StreamPriorityRange range = device().streamPriorityRange();
        give(range.least());
        give(range.greatest());
      }
      case "limit" -> Cache.setLimit(number());
      case "trim" -> give(Cache.trim(number()).contexts());
      case "ahead" ->
          Cache.prepare(
              VectorWords.items(text()).stream()
                  .map(name -> new SmResource(((Resource) find(name)).bytes))
                  .toList());
      case "cache" -> {
        CacheStats now = Cache.stats();
        give(now.inUse());
        give(now.kept());
        give(now.hits() - vector.begin.hits());
        give(now.misses() - vector.begin.misses());
        give(now.evicted() - vector.begin.evicted());
      }
      case "live" -> {
        int device = number();
        List<LiveContext> live = device == -1 ? Context.live() : Context.live(new Device(device));
        give(
            VectorWords.list(
                live.stream()
                    .map(
                        one ->
                            one.smCount()
                                + "/"
                                + one.handleCount()
                                + "/"
                                + one.streamCount()
                                + "/"
                                + (one.isPrivate() ? 1 : 0))));
      }
      default -> {
        if (!VectorLeases.give(this, operation)) {
          giveOfResources();
        }
      }
    }
  }

  private void giveOfResources() throws Exception {
    switch (operation) {
      case "resource" -> {
        Device device = device();
        int type = VectorWords.type(text());
        String name = text();
        keep(
            name,
            type == ResourceType.SM.number
                ? device.sms()
                : type == ResourceType.WORKQUEUE_CONFIG.number
                    ? device.workqueue()
                    : resource(Functions.gcx_device_get_resource(device.ordinal(), type)));
      }
      case "info" -> {
        ResourceInfo info = ((Resource) object()).info();
        give(info.device());
        give(VectorWords.of(info.family()));
        give(info.smCount());
        give(info.atomCount());
        give(info.minPartitionSize());
        give(info.coscheduledAlignment());
        give(info.flags());
        boolean domain = (info.flags() & SmRequest.LOCALITY_DOMAIN_ID) != 0;
        give(domain ? Integer.toUnsignedString(info.localityDomainId()) : "-");
      }
      case "queue" -> {
        WorkqueueResource queue = (WorkqueueResource) object();
        give(queue.device().ordinal());
        give(VectorWords.of(queue.scope()));
        give(queue.concurrencyLimit());
      }
      case "configure" -> {
        WorkqueueResource queue = new WorkqueueResource(((Resource) object()).bytes);
        String scope = text();
        int limit = number();
        String name = text();
        keep(
            name,
            VectorWords.isNumber(scope)
                ? resource(Functions.gcx_workqueue_configure(queue, Integer.parseInt(scope), limit))
                : queue.configured(VectorWords.scope(scope), limit));
      }
      case "split" -> split();
      case "union" -> set(sms().union(sms()));
      case "subtract" -> set(sms().subtract(sms()));
      case "intersect" -> set(sms().intersect(sms()));
      case "overlap" -> give(sms().overlap(sms()));
      case "live-overlap" -> give(sms().liveOverlap());
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
        SmResource of = sms();
        int index = number();
        String name = text();
        boolean known = index >= 0 && index < of.info().atomCount();
        SmResource atom =
            known
                ? of.atoms().get(index)
                : new SmResource(Functions.gcx_resource_get_atom(of, index));
        give(atom.smCount());
        keep(name, atom);
      }
      case "map" -> {
        Device device = device();
        String family = text();
        if (VectorWords.isNumber(family)) {
          Functions.gcx_device_map_sms(device.ordinal(), Integer.parseInt(family));
        } else {
          device.mapSms(VectorWords.family(family));
        }
      }
      case "sms" -> give(VectorWords.ids(sms().smIds()));
      default -> giveOfObjects();
    }
  }

  /** The third input is the name, after both resources. */
  private void set(SmResource made) {
    keep(text(), made);
    give(made.smCount());
  }

  private void split() throws Exception {
    SmResource of = sms();
    String flags = text();
    String list = text();
    String name = text();
    List<SmRequest> requests = VectorWords.requests(list);
    if (VectorWords.isNumber(flags)) {
      Functions.gcx_sm_split(of, requests, Integer.parseUnsignedInt(flags));
      throw new Vectors.Different("a split with flags that nobody knows was made");
    }
    SplitOption[] options = VectorWords.options(flags);
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
          "the plan says " + plan + " or " + refused + ", the split " + counts);
    }
    for (int i = 0; i < counts.size(); i++) {
      keep(name + "." + i, split.groups().get(i));
    }
    keep(name + ".rest", split.remainder());
    give(VectorWords.list(counts.stream().map(String::valueOf)));
    give(plan.remainder());
  }

  private void giveOfObjects() throws Exception {
    switch (operation) {
      case "context" -> {
        Resource[] parts =
            VectorWords.items(text()).stream().map(this::find).toArray(Resource[]::new);
        String flags = text();
        String name = text();
        keep(
            name,
            switch (flags) {
              case "-" -> Context.create(parts);
              case "private" -> Context.createPrivate(parts);
              default ->
                  Functions.gcx_context_create(List.of(parts), Integer.parseUnsignedInt(flags));
            });
      }
      case "get" -> {
        Object of = object();
        int type = VectorWords.type(text());
        String name = text();
        keep(
            name,
            resource(
                of instanceof Stream stream
                    ? Functions.gcx_stream_get_resource(stream, type)
                    : Functions.gcx_context_get_resource((Context) of, type)));
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
        give(stream.info().device());
        give(stream.info().priority());
        give(stream.smCount());
      }
      case "event" -> {
        Device device = device();
        String flags = text();
        String name = text();
        keep(
            name,
            VectorWords.isNumber(flags)
                ? Functions.gcx_event_create(device.ordinal(), Integer.parseUnsignedInt(flags))
                : Event.create(device, VectorWords.eventOptions(flags)));
      }
      case "adopt" -> {
        Object of = object();
        String name = text();
        keep(
            name,
            of instanceof Context context
                ? Context.fromNative(context.nativeHandle())
                : of instanceof Stream stream
                    ? Stream.fromNative(stream.nativeHandle())
                    : Event.fromNative(((Event) of).nativeHandle()));
      }
      case "cluster" -> {
        Object of = object();
        give(
            of instanceof Stream stream
                ? stream.maxClusterSize()
                : new SmResource(((Resource) of).bytes).maxClusterSize());
      }
      case "probe" -> give(VectorWords.ids(((Stream) object()).probeSms()));
      case "close" -> ((AutoCloseable) object()).close();
      default -> giveOfOrder();
    }
  }

  private void giveOfOrder() {
    switch (operation) {
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
      case "record", "wait" -> {
        Object of = object();
        Event event = (Event) object();
        boolean record = operation.equals("record");
        if (of instanceof Stream stream) {
          if (record) {
            stream.record(event);
          } else {
            stream.waitFor(event);
          }
        } else if (record) {
          ((Context) of).record(event);
        } else {
          ((Context) of).waitFor(event);
        }
      }
      case "synchronize" -> {
        Object of = object();
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
        Object of = object();
        boolean done =
            of instanceof Stream stream
                ? stream.isDone()
                : of instanceof Lease lease ? lease.isDone() : ((Event) of).isDone();
        if (!done) {
          throw new GcxException.NotReady("it hasn't finished");
        }
      }
      case "elapsed" -> {
        Event start = (Event) object();
        ((Event) object()).millisecondsSince(start);
      }
      default -> throw new IllegalArgumentException(operation + ": no such operation");
    }
  }
}

package gcx;

import static gcx.Support.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Devices, resources, splits, results and messages: what C's values become in Java. */
class ValuesTest {
  private final Device device = new Device(0);
  private final SmResource all = device.sms();

  @Test
  void recordsHoldTheDevicesFields() {
    assertEquals(List.of(new Device(0), new Device(1)), Device.all());
    DeviceInfo info = device.info();
    assertTrue(info.name().startsWith("SIMULATED"), info.name());
    assertEquals(132, info.smCount());
    assertEquals(9, info.computeCapabilityMajor());
    assertEquals(8, info.coscheduledAlignment());
    assertNotEquals(info.uuid(), new Device(1).info().uuid());
    assertEquals(new StreamPriorityRange(0, -5), device.streamPriorityRange());
    assertEquals(0, device.sharedSms().length);
  }

  @Test
  void resourcesAreEqualByContent() {
    SmResource small = Support.part(24);
    SmResource rest = all.subtract(small);
    assertTrue(small.isDisjoint(rest));
    assertEquals(all, small.union(rest));
    assertEquals(all.hashCode(), small.union(rest).hashCode());
    assertEquals(0, small.intersect(rest).smCount());
    assertEquals(24, small.overlap(all));
    assertNotEquals(small, rest);
    assertFalse(small.equals(null));
    assertEquals(16, all.atoms().size());
    assertEquals(device, all.device());
    assertEquals(ResourceType.SM, all.info().type());
    assertEquals("132 SMs of device 0, COSCHEDULED", all.toString());
  }

  @Test
  void verifiedStreamsAreLists() {
    try (Context context = Context.create(Support.part(24));
        Stream one = context.createStream();
        Stream other = context.createStream()) {
      Stream.Verified proof = Stream.verify(List.of(one, other));
      assertFalse(proof.found().ok());
      assertEquals(24, proof.streams().get(0).smCount());
      assertEquals(proof.streams().get(1).seen(), proof.found().overlap());
      String problems = proof.found().problems();
      assertTrue(problems.startsWith("partitions A and B share 24 SMs"), problems);
      refused(GcxException.InvalidValue.class, "Stream.verify: ", () -> Stream.verify(List.of()));
    }
  }

  @Test
  void valuesThatJavaCannotPassAreRefused() {
    for (Executable wrong :
        List.<Executable>of(
            () -> all.split(),
            () -> all.split(List.of()),
            () -> all.split(8, 0),
            () -> all.split(-1),
            () -> SmRequest.of(1L << 32))) {
      assertThrows(GcxException.InvalidValue.class, wrong);
    }
    for (Executable wrong :
        List.<Executable>of(
            () -> all.split((List<SmRequest>) null),
            () -> all.split(Arrays.asList((SmRequest) null)),
            () -> all.union(null))) {
      assertThrows(NullPointerException.class, wrong);
    }
    for (int ordinal : new int[] {-1, 2, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(ordinal).info());
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(ordinal).sms());
      assertThrows(GcxException.InvalidDevice.class, () -> Context.live(new Device(ordinal)));
    }
    SmResource zero = new SmResource(new byte[Resource.SIZE]);
    assertThrows(GcxException.InvalidResourceType.class, zero::smCount);
    assertThrows(IllegalArgumentException.class, () -> new SmResource(new byte[127]).info());
    assertThrows(IllegalArgumentException.class, () -> new SmResource(null).info());
  }

  @Test
  void requestsHaveTheirFields() {
    assertEquals(
        new SmRequest(16, 8, 32, SmRequest.BACKFILL | SmRequest.LOCALITY_DOMAIN_ID, 2),
        SmRequest.of(16)
            .withCoscheduled(8)
            .withPreferredCoscheduled(32)
            .withBackfill()
            .withLocalityDomain(2));
  }

  @Test
  void negativeWorkqueueLimitIsRefused() {
    if (Gcx.driver().capabilities().contains(Capability.WORKQUEUES)) {
      WorkqueueResource queue = device.workqueue();
      assertThrows(
          GcxException.InvalidValue.class, () -> queue.configured(WorkqueueScope.DEVICE_CTX, -1));
      assertTrue(queue.toString().startsWith("workqueue configuration of device 0: DEVICE_CTX"));
    }
  }

  @Test
  void exceptionHoldsResultAndMessages() {
    GcxException error =
        assertThrows(
            GcxException.ResourceConfiguration.class,
            () -> all.split(List.of(SmRequest.of(10)), SplitOption.EXACT));
    assertEquals(Result.INVALID_RESOURCE_CONFIGURATION, error.result());
    assertEquals(915, error.code());
    assertEquals("GCX_ERROR_INVALID_RESOURCE_CONFIGURATION", error.resultName());
    assertTrue(error.detail().startsWith("gcx_sm_split: "), error.detail());
    assertTrue(error.getMessage().startsWith("SmResource.split: "), error.getMessage());
    assertTrue(error.getMessage().endsWith(", 915]"), error.getMessage());
    for (Result result : Result.values()) {
      assertEquals(result, Result.of(result.code()));
      assertFalse(Gcx.describe(result).isEmpty());
    }
    assertEquals(Result.UNKNOWN, Result.of(123456));
  }

  @Test
  void constantsAreThoseOfTheHeader() {
    assertEquals(Raw.GCX_REST, (int) SmRequest.REST);
    assertEquals(Raw.GCX_CAPABILITY_COUNT, Capability.values().length);
    assertEquals(Raw.GCX_VERSION, Gcx.version());
    DriverInfo driver = Gcx.driver();
    assertTrue(driver.capabilities().contains(Capability.GREEN_CONTEXTS));
    assertEquals(driver.version() >= 13010, driver.capabilities().contains(Capability.WORKQUEUES));
  }

  @Test
  void rawLayerTakesHandlesAsNumbers() {
    byte[] whole = Raw.gcx_device_get_resource(0, Raw.GCX_RESOURCE_SM);
    byte[] parts = Raw.gcx_sm_split(whole, new long[] {16, 0, 0, 0, 0}, Raw.GCX_SPLIT_DEFAULT);
    long context = Raw.gcx_context_create(Arrays.copyOf(parts, Resource.SIZE), 0);
    try {
      assertEquals(16, Raw.gcx_context_get_info(context).smCount());
    } finally {
      Raw.gcx_context_destroy(context);
    }
    assertThrows(GcxException.InvalidHandle.class, () -> Raw.gcx_context_get_info(context));
    assertThrows(GcxException.InvalidValue.class, () -> Raw.gcx_reservation_join("/no such file"));
  }

  @Test
  void rawLayerTakesNullForAnEmptyArray() {
    byte[] whole = Raw.gcx_device_get_resource(0, Raw.GCX_RESOURCE_SM);
    for (Executable empty :
        List.<Executable>of(
            () -> Raw.gcx_context_create(null, 0),
            () -> Raw.gcx_sm_split(whole, null, Raw.GCX_SPLIT_DEFAULT),
            () -> Raw.gcx_lease_resize(null, 0),
            () -> Raw.gcx_graph_launch(0, null),
            () -> Raw.gcx_graph_set_part(0, null, 0),
            () -> Raw.gcx_verify(null))) {
      assertThrows(GcxException.class, empty);
    }
  }

  @Test
  void namesInMessagesExist() throws ReflectiveOperationException {
    for (String name : CNames.HERE.keySet()) {
      assertTrue(
          Arrays.stream(Functions.class.getDeclaredMethods())
                  .anyMatch(f -> f.getName().equals(name))
              || Arrays.stream(Raw.class.getFields()).anyMatch(f -> f.getName().equals(name)),
          name);
    }
    for (String here : CNames.HERE.values()) {
      String[] parts = here.split("\\.");
      String owner = parts[0].equals("Pushed") ? "gcx.Context$Pushed" : "gcx." + parts[0];
      Class<?> type = Class.forName(owner);
      assertTrue(
          Arrays.stream(type.getMethods()).anyMatch(method -> method.getName().equals(parts[1]))
              || Arrays.stream(type.getFields()).anyMatch(f -> f.getName().equals(parts[1])),
          here);
    }
  }

  @Test
  void messagesNameJavasMethods() {
    assertEquals(
        "SmResource.smIds: call new Device(1).mapSms(SmFamily.FINE) or gcx_no_such first",
        Names.inJava(
            "gcx_resource_get_sm_ids: call gcx_device_map_sms(1, 2) or gcx_no_such first"));
    assertEquals(
        "Graph.setKernel: grid and block have a 0; arguments.remaining() is 3; blockThreads is 0",
        Names.inJava(
            "gcx_graph_set_kernel: params->grid and params->block have a 0;"
                + " params->argument_bytes is 3; params->block_threads is 0"));
    assertEquals(
        "LeaseRequest.minSmCount is 25; a name of the family; LeaseRequest.withMinimum takes less",
        Names.inJava("params->min_sm_count is 25; a name of the family; min_sm_count takes less"));
  }
}

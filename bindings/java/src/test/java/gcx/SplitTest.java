package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Devices, resources, splits: values. */
class SplitTest {
  private final Device device = new Device(0);
  private final SmResource all = device.sms();

  @Test
  void devicesAreDescribed() {
    assertEquals(2, Device.count());
    assertEquals(List.of(new Device(0), new Device(1)), Device.all());
    DeviceInfo info = device.info();
    assertTrue(info.name().startsWith("SIMULATED"), info.name());
    assertEquals(132, info.smCount());
    assertEquals(9, info.computeCapabilityMajor());
    assertEquals(8, info.coscheduledAlignment());
    assertNotEquals(info.uuid(), new Device(1).info().uuid());
    assertEquals(new StreamPriorityRange(0, -5), device.streamPriorityRange());
  }

  @Test
  void aWholeDeviceIsDescribed() {
    assertEquals(132, all.smCount());
    assertEquals(SmFamily.COSCHEDULED, all.family());
    assertEquals(device, all.device());
    assertEquals(16, all.atoms().size());
    assertEquals(132, all.atoms().stream().mapToInt(SmResource::smCount).sum());
    assertEquals(ResourceType.SM, all.info().type());
    assertEquals("132 SMs of device 0, COSCHEDULED", all.toString());
  }

  @Test
  void aSplitAndItsPlanAgree() {
    Split split = all.split(24, 10);
    assertEquals(List.of(24, 12), split.groups().stream().map(SmResource::smCount).toList());
    assertEquals(96, split.remainder().smCount());
    assertEquals(new Plan(List.of(24, 12), 96), all.plan(24, 10));
    assertEquals(
        new Plan(List.of(108, 24), 0), all.plan(List.of(SmRequest.rest(), SmRequest.of(24))));
    assertEquals(new Plan(List.of(10), 122), all.plan(List.of(SmRequest.of(10)), SplitOption.FINE));
    assertEquals(
        SmFamily.MAX_CLUSTER,
        all.split(List.of(SmRequest.of(24)), SplitOption.MAX_CLUSTER).groups().get(0).family());
    assertThrows(UnsupportedOperationException.class, () -> split.groups().add(split.remainder()));
  }

  @Test
  void verifyFindsAnOverlap() {
    try (Context context = Context.create(all.split(24).groups().get(0));
        Stream one = context.createStream();
        Stream other = context.createStream()) {
      Stream.Verified proof = Stream.verify(List.of(one));
      assertTrue(proof.found().ok(), proof.found().problems());
      assertEquals(24, proof.streams().get(0).smCount());
      proof = Stream.verify(List.of(one, other));
      assertFalse(proof.found().ok());
      assertEquals(proof.streams().get(1).seen(), proof.found().overlap());
      String problems = proof.found().problems();
      assertTrue(problems.startsWith("partitions A and B share 24 SMs"), problems);
      GcxException error =
          assertThrows(GcxException.InvalidValue.class, () -> Stream.verify(List.of()));
      assertTrue(error.getMessage().startsWith("Stream.verify: "), error.getMessage());
    }
  }

  @Test
  void resourcesAreSets() {
    SmResource small = all.split(24).groups().get(0);
    SmResource rest = all.subtract(small);
    assertEquals(108, rest.smCount());
    assertTrue(small.isDisjoint(rest));
    assertEquals(all, small.union(rest));
    assertEquals(all.hashCode(), small.union(rest).hashCode());
    assertEquals(0, small.intersect(rest).smCount());
    assertEquals(24, small.overlap(all));
    assertNotEquals(small, rest);
    assertFalse(small.equals(null));
    assertEquals(0, small.overlap(new Device(1).sms()));
  }

  @Test
  void sharedSmsWithoutAModuleAreNone() {
    assertEquals(0, device.sharedSms().length);
    assertThrows(
        GcxException.NotReady.class,
        () -> all.split(List.of(SmRequest.of(24)), SplitOption.EXCLUDE_SHARED));
  }

  @Test
  void wrongValuesAreRefused() {
    assertThrows(GcxException.InvalidValue.class, () -> all.split());
    assertThrows(GcxException.InvalidValue.class, () -> all.split(List.of()));
    assertThrows(GcxException.InvalidValue.class, () -> all.split(0));
    assertThrows(GcxException.InvalidValue.class, () -> all.split(8, 0));
    assertThrows(GcxException.InvalidValue.class, () -> new SmRequest(0, 0, 0, 0, 0));
    assertThrows(GcxException.InvalidValue.class, () -> all.split(-1));
    assertThrows(GcxException.InvalidValue.class, () -> SmRequest.of(1L << 32));
    assertThrows(
        GcxException.InvalidValue.class,
        () -> all.split(List.of(SmRequest.of(8)), SplitOption.FINE, SplitOption.MAX_CLUSTER));
    assertThrows(NullPointerException.class, () -> all.split((List<SmRequest>) null));
    assertThrows(NullPointerException.class, () -> all.split(Arrays.asList((SmRequest) null)));
    assertThrows(NullPointerException.class, () -> all.union(null));
    assertThrows(GcxException.ResourceConfiguration.class, () -> all.union(new Device(1).sms()));
    for (int ordinal : new int[] {-1, 2, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(ordinal).info());
      assertThrows(GcxException.InvalidDevice.class, () -> new Device(ordinal).sms());
      assertThrows(GcxException.InvalidDevice.class, () -> Context.live(new Device(ordinal)));
    }
  }

  @Test
  void forgedResourcesAreRefused() {
    SmResource zero = new SmResource(new byte[Resource.SIZE]);
    assertThrows(GcxException.InvalidResourceType.class, zero::smCount);
    byte[] changed = all.bytes.clone();
    changed[40] ^= 1;
    SmResource forged = new SmResource(changed);
    assertThrows(GcxException.ResourceConfiguration.class, () -> forged.split(8));
    assertThrows(IllegalArgumentException.class, () -> new SmResource(new byte[127]).info());
    assertThrows(IllegalArgumentException.class, () -> new SmResource(null).info());
  }

  @Test
  void errorsSayWhatWouldWork() {
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
    GcxException large = assertThrows(GcxException.class, () -> all.split(140));
    assertTrue(large.getMessage().contains("device 0 has 132"), large.getMessage());
    assertEquals("no error", Gcx.describe(Result.SUCCESS));
  }

  @Test
  void structuredSplitsNeedANewDriver() {
    SmRequest request = SmRequest.of(16).withCoscheduled(8);
    if (Gcx.capability(Capability.STRUCTURED_SPLIT).available()) {
      Split split = all.split(List.of(request, SmRequest.rest().withBackfill()));
      assertEquals(SmFamily.STRUCTURED, split.groups().get(0).family());
      assertThrows(GcxException.NotSupported.class, () -> split.groups().get(0).smIds());
    } else {
      GcxException error =
          assertThrows(GcxException.NotSupported.class, () -> all.split(List.of(request)));
      assertTrue(error.getMessage().contains("13.1"), error.getMessage());
    }
  }

  @Test
  void workqueuesNeedANewDriver() {
    if (!Gcx.capability(Capability.WORKQUEUES).available()) {
      assertThrows(GcxException.NotSupported.class, device::workqueue);
      return;
    }
    WorkqueueResource queue = device.workqueue().configured(WorkqueueScope.GREEN_CTX_BALANCED, 4);
    assertEquals(WorkqueueScope.GREEN_CTX_BALANCED, queue.scope());
    assertEquals(4, queue.concurrencyLimit());
    assertThrows(
        GcxException.InvalidValue.class, () -> queue.configured(WorkqueueScope.DEVICE_CTX, -1));
    try (Context context = Context.create(all.split(24).groups().get(0), queue);
        Stream stream = context.createStream()) {
      assertEquals(queue, context.workqueueConfiguration());
      assertEquals(queue, stream.workqueueConfiguration());
      assertEquals(context.workqueue(), stream.workqueue());
      assertTrue(context.workqueue().toString().startsWith("workqueue of device 0"));
    }
  }
}

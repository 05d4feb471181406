package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** The generated layer, and what the package says of gcx.h by itself. */
class HeaderTest {
  @Test
  void resultsAreFoundByTheirNumbers() {
    for (Result result : Result.values()) {
      assertEquals(result, Result.of(result.code()));
      assertFalse(Gcx.describe(result).isEmpty());
    }
    assertEquals(Result.UNKNOWN, Result.of(123456));
  }

  @Test
  void numbersAreThoseOfTheHeader() {
    assertEquals(Raw.GCX_REST, (int) SmRequest.REST);
    assertEquals(Raw.GCX_CAPABILITY_COUNT, Capability.values().length);
    assertEquals(Raw.GCX_VERSION, Gcx.version());
  }

  @Test
  void theRawLayerMakesAContextOfItsOwn() {
    byte[] all = Raw.gcx_device_get_resource(0, Raw.GCX_RESOURCE_SM);
    byte[] parts = Raw.gcx_sm_split(all, new long[] {16, 0, 0, 0, 0}, Raw.GCX_SPLIT_DEFAULT);
    long context = Raw.gcx_context_create(Arrays.copyOf(parts, 128), 0);
    try {
      assertEquals(16, Raw.gcx_context_get_info(context).smCount());
      assertEquals(1, Raw.gcx_context_list(0).length);
    } finally {
      Raw.gcx_context_destroy(context);
    }
    assertThrows(GcxException.InvalidHandle.class, () -> Raw.gcx_context_get_info(context));
    assertThrows(GcxException.InvalidValue.class, () -> Raw.gcx_reservation_join("/no such file"));
  }

  @Test
  void eachNameInMessagesIsOneOfJavas() throws ReflectiveOperationException {
    for (String name : Names.HERE.keySet()) {
      assertTrue(
          Arrays.stream(Functions.class.getDeclaredMethods())
                  .anyMatch(f -> f.getName().equals(name))
              || Arrays.stream(Raw.class.getFields()).anyMatch(f -> f.getName().equals(name)),
          name);
    }
    for (String here : Names.HERE.values()) {
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
  void messagesNameWhatJavaHas() {
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

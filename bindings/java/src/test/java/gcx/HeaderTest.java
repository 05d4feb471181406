package gcx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What the package says of gcx.h, against what SWIG took from it. */
class HeaderTest {
  @Test
  void resultsAreThoseOfTheHeader() throws ReflectiveOperationException {
    TreeMap<String, Integer> header = new TreeMap<>();
    for (Field field : FunctionsConstants.class.getFields()) {
      if (field.getName().startsWith("GCX_ERROR_")) {
        header.put(field.getName().substring("GCX_ERROR_".length()), field.getInt(null));
      }
    }
    header.put("SUCCESS", 0);
    TreeMap<String, Integer> here = new TreeMap<>();
    for (Result result : Result.values()) {
      here.put(result.name(), result.code());
      assertEquals(result, Result.of(result.code()));
      assertTrue(!Gcx.describe(result).isEmpty());
    }
    assertEquals(header, here);
    assertEquals(Result.UNKNOWN, Result.of(123456));
  }

  @Test
  void numbersAreThoseOfTheHeader() {
    assertEquals(Raw.GCX_SM_REQUEST_BACKFILL, SmRequest.BACKFILL);
    assertEquals(Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_ID, SmRequest.LOCALITY_DOMAIN_ID);
    assertEquals(
        Raw.GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS,
        SmRequest.LOCALITY_DOMAIN_SUPPLEMENTAL_SMS);
    assertEquals(Raw.GCX_LOCALITY_DOMAIN_ID_ANY, SmRequest.LOCALITY_DOMAIN_ID_ANY);
    assertEquals(Raw.GCX_REST, (int) SmRequest.REST);
    assertEquals(Raw.GCX_NO_NODE, GraphNode.NO_PARENT);
    assertEquals(Raw.GCX_CAPABILITY_COUNT, Capability.values().length);
    assertEquals(Raw.GCX_VERSION, Gcx.version());
  }

  @Test
  void eachFunctionHasANameForMessages() throws ReflectiveOperationException {
    Set<String> functions =
        Arrays.stream(Functions.class.getDeclaredMethods())
            .map(Method::getName)
            .filter(name -> name.startsWith("gcx_"))
            .collect(Collectors.toCollection(TreeSet::new));
    Set<String> named =
        Names.HERE.keySet().stream()
            .filter(name -> name.startsWith("gcx_"))
            .collect(Collectors.toCollection(TreeSet::new));
    assertEquals(functions, named);
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

package gcx;

import java.util.Arrays;
import java.util.List;

/** A description of resources of one device: a value, valid in the process that created it. */
public abstract sealed class Resource permits SmResourceMethods, WorkqueueResource {
  static final int SIZE = 128;

  /** The struct gcx_resource. */
  final byte[] bytes;

  private ResourceInfo info;

  Resource(byte[] bytes) {
    this.bytes = bytes;
  }

  /** {@return its counts and kinds} */
  public final ResourceInfo info() {
    ResourceInfo known = info;
    if (known == null) {
      known = Functions.gcx_resource_get_info(this);
      info = known;
    }
    return known;
  }

  /** {@return its device} */
  public final Device device() {
    return new Device(info().device());
  }

  /** Compares what the resources describe. */
  @Override
  public final boolean equals(Object other) {
    return other instanceof Resource that && Arrays.equals(bytes, that.bytes);
  }

  @Override
  public final int hashCode() {
    return Arrays.hashCode(bytes);
  }

  static byte[] joined(List<? extends Resource> resources) {
    byte[] all = new byte[resources.size() * SIZE];
    int next = 0;
    for (Resource resource : resources) {
      System.arraycopy(resource.bytes, 0, all, next, SIZE);
      next += SIZE;
    }
    return all;
  }
}

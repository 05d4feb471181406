package gcx;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A set of SMs of one device, made of atoms: the smallest groups that the driver gives. */
public final class SmResource extends Resource {
  SmResource(byte[] bytes) {
    super(bytes);
  }

  /**
   * How many SMs it holds.
   *
   * @return its SMs
   */
  public int smCount() {
    return info().smCount();
  }

  /**
   * How its atoms were made.
   *
   * @return the family
   */
  public SmFamily family() {
    return info().family();
  }

  /**
   * Its atoms, each as a resource of its own.
   *
   * @return the atoms
   */
  public List<SmResource> atoms() {
    List<SmResource> atoms = new ArrayList<>();
    for (int i = 0; i < info().atomCount(); i++) {
      atoms.add(new SmResource(Functions.gcx_resource_get_atom(this, i)));
    }
    return List.copyOf(atoms);
  }

  /**
   * Divides it into a group for each request, disjoint, and what is left over. Counts are rounded
   * up to whole atoms. Makes nothing on the device.
   *
   * @param requests what the groups are to be
   * @param options the family, where this is a whole device; whether to round
   * @return the groups and the remainder
   * @throws GcxException.ResourceConfiguration the groups don't fit
   * @throws GcxException.InvalidValue there is no request, or the options exclude each other
   * @throws GcxException.NotSupported the driver or the device can't
   */
  public Split split(List<SmRequest> requests, SplitOption... options) {
    byte[] all = Functions.gcx_sm_split(this, requests, SplitOption.flags(options));
    List<SmResource> parts = new ArrayList<>();
    for (int start = 0; start < all.length; start += SIZE) {
      parts.add(new SmResource(Arrays.copyOfRange(all, start, start + SIZE)));
    }
    SmResource remainder = parts.remove(parts.size() - 1);
    return new Split(parts, remainder);
  }

  /**
   * Divides it into groups of so many SMs, and what is left over: {@link #split(List,
   * SplitOption...)} with counts alone.
   *
   * @param smCounts SMs of each group
   * @return the groups and the remainder
   */
  public Split split(int... smCounts) {
    return split(requests(smCounts));
  }

  /**
   * What {@link #split(List, SplitOption...)} would give, in SMs. A plan and a split can't differ.
   *
   * @param requests what the groups are to be
   * @param options as there
   * @return the counts
   */
  public Plan plan(List<SmRequest> requests, SplitOption... options) {
    int[] counts = Functions.gcx_sm_plan(this, requests, SplitOption.flags(options));
    int last = counts.length - 1;
    return new Plan(Arrays.stream(counts, 0, last).boxed().toList(), counts[last]);
  }

  /**
   * What {@link #split(int...)} would give, in SMs.
   *
   * @param smCounts SMs of each group
   * @return the counts
   */
  public Plan plan(int... smCounts) {
    return plan(requests(smCounts));
  }

  /**
   * The SMs of both together.
   *
   * @param other of the same device and family
   * @return the union
   */
  public SmResource union(SmResource other) {
    return new SmResource(Functions.gcx_resource_union(this, other));
  }

  /**
   * The SMs of this one that aren't the other's.
   *
   * @param other of the same device and family
   * @return the difference
   */
  public SmResource subtract(SmResource other) {
    return new SmResource(Functions.gcx_resource_subtract(this, other));
  }

  /**
   * The SMs that are in both.
   *
   * @param other of the same device and family
   * @return the intersection
   */
  public SmResource intersect(SmResource other) {
    return new SmResource(Functions.gcx_resource_intersect(this, other));
  }

  /**
   * How many SMs both share: 0 for two devices.
   *
   * @param other any other
   * @return the SMs in both
   * @throws GcxException.NotReady they are of two families that aren't mapped, see {@link
   *     Device#mapSms}
   */
  public int overlap(SmResource other) {
    return Functions.gcx_resource_get_overlap(this, other);
  }

  /**
   * Whether they share no SM.
   *
   * @param other any other
   * @return whether {@link #overlap} is 0
   */
  public boolean isDisjoint(SmResource other) {
    return overlap(other) == 0;
  }

  /**
   * How many of its SMs are held by the contexts of {@link Context#live()}.
   *
   * @return the SMs in use
   * @throws GcxException.NotReady a context is of another family, and they aren't mapped
   */
  public int liveOverlap() {
    return Functions.gcx_resource_get_live_overlap(this);
  }

  /**
   * The most blocks that a thread block cluster can have on it. The first call on a device with
   * clusters makes a context of it, and keeps it.
   *
   * @return blocks; 1 on a device without clusters
   */
  public int maxClusterSize() {
    return Functions.gcx_resource_get_max_cluster_size(this);
  }

  /**
   * The hardware's numbers of its SMs, ascending.
   *
   * @return the numbers
   * @throws GcxException.NotReady its family isn't mapped, see {@link Device#mapSms}
   */
  public int[] smIds() {
    return Functions.gcx_resource_get_sm_ids(this);
  }

  /** Counts, family and device in words. */
  @Override
  public String toString() {
    ResourceInfo info = info();
    return info.smCount() + " SMs of device " + info.device() + ", " + info.family();
  }

  private static List<SmRequest> requests(int... smCounts) {
    return IntStream.of(smCounts).mapToObj(SmRequest::of).collect(Collectors.toList());
  }
}

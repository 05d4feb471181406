package gcx;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** A set of SMs of one device, made of atoms: the smallest groups that the driver splits off. */
public final class SmResource extends SmResourceMethods {
  SmResource(byte[] bytes) {
    super(bytes);
  }

  /** {@return how many SMs it holds} */
  public int smCount() {
    return info().smCount();
  }

  /** {@return the family of its atoms} */
  public SmFamily family() {
    return info().family();
  }

  /** {@return its atoms, one resource each} */
  public List<SmResource> atoms() {
    return IntStream.range(0, info().atomCount())
        .mapToObj(atom -> new SmResource(Functions.gcx_resource_get_atom(this, atom)))
        .toList();
  }

  /**
   * Divides it into disjoint groups, one for each request, and a remainder. Counts are rounded up
   * to whole atoms. Creates nothing on the device.
   *
   * @param requests the groups
   * @param options the family, if this is a whole device; whether to round
   * @return the groups and the remainder
   * @see Raw#gcx_sm_split
   */
  public Split split(List<SmRequest> requests, SplitOption... options) {
    byte[] all = Functions.gcx_sm_split(this, requests, SplitOption.flags(options));
    List<SmResource> parts = new ArrayList<>();
    for (int start = 0; start < all.length; start += SIZE) {
      parts.add(new SmResource(Arrays.copyOfRange(all, start, start + SIZE)));
    }
    SmResource remainder = parts.remove(parts.size() - 1);
    return new Split(List.copyOf(parts), remainder);
  }

  /**
   * Divides it into groups of so many SMs and a remainder, like {@link #split(List,
   * SplitOption...)}.
   *
   * @param smCounts SMs of each group
   * @return the groups and the remainder
   */
  public Split split(int... smCounts) {
    return split(requests(smCounts));
  }

  /**
   * {@return the counts that {@link #split(List, SplitOption...)} would give; they never differ}
   *
   * @param requests the groups
   * @param options the options of the split
   */
  public Plan plan(List<SmRequest> requests, SplitOption... options) {
    int[] counts = Functions.gcx_sm_split_counts(this, requests, SplitOption.flags(options));
    int last = counts.length - 1;
    return new Plan(Arrays.stream(counts, 0, last).boxed().toList(), counts[last]);
  }

  /**
   * {@return the counts that {@link #split(int...)} would give}
   *
   * @param smCounts SMs of each group
   */
  public Plan plan(int... smCounts) {
    return plan(requests(smCounts));
  }

  /**
   * {@return the intersection of both}
   *
   * @param other of the same device and family
   */
  public SmResource intersect(SmResource other) {
    return subtract(subtract(other));
  }

  /**
   * {@return whether {@link #overlap} is 0}
   *
   * @param other any other
   */
  public boolean isDisjoint(SmResource other) {
    return overlap(other) == 0;
  }

  @Override
  public String toString() {
    ResourceInfo info = info();
    return info.smCount() + " SMs of device " + info.device() + ", " + info.family();
  }

  private static List<SmRequest> requests(int... smCounts) {
    return IntStream.of(smCounts).mapToObj(SmRequest::of).toList();
  }
}

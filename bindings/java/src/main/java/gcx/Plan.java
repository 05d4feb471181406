package gcx;

import java.util.List;

/**
 * What a split would give, in SMs.
 *
 * @param groups the count of each group, in the requests' order
 * @param remainder the count of what is left over
 */
public record Plan(List<Integer> groups, int remainder) {
  /**
   * Copies the list.
   *
   * @param groups the count of each group
   * @param remainder the count of what is left over
   */
  public Plan {
    groups = List.copyOf(groups);
  }
}

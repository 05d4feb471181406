package gcx;

import java.util.List;

/**
 * What a split gives: disjoint resources.
 *
 * @param groups a resource for each request, in their order
 * @param remainder what is left over; has 0 SMs if nothing is
 */
public record Split(List<SmResource> groups, SmResource remainder) {
  /**
   * Copies the list.
   *
   * @param groups a resource for each request
   * @param remainder what is left over
   */
  public Split {
    groups = List.copyOf(groups);
  }
}

package gcx;

import java.util.List;

/**
 * The counts of SMs that a split would give.
 *
 * @param groups the count of each group, in the requests' order
 * @param remainder the count of what is left over
 */
public record Plan(List<Integer> groups, int remainder) {}

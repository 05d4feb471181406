package gcx;

import java.util.List;

/**
 * The result of a split: disjoint resources.
 *
 * @param groups a resource for each request, in their order
 * @param remainder what is left over, possibly 0 SMs
 */
public record Split(List<SmResource> groups, SmResource remainder) {}

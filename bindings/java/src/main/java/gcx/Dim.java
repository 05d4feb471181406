package gcx;

/**
 * Blocks of a grid or a cluster, or threads of a block.
 *
 * @param x along the first axis
 * @param y along the second
 * @param z along the third
 */
public record Dim(int x, int y, int z) {
  /**
   * Creates dimensions.
   *
   * @param x along the first axis
   * @param y along the second
   * @param z along the third
   * @throws GcxException.InvalidValue a number is negative
   */
  public Dim {
    if (x < 0 || y < 0 || z < 0) {
      throw new GcxException.InvalidValue(
          "negative dimension of a grid or block: " + x + ", " + y + ", " + z);
    }
  }

  /**
   * {@return dimensions that are 1 along the second and third axis}
   *
   * @param x along the first axis
   */
  public static Dim of(int x) {
    return new Dim(x, 1, 1);
  }
}

package gcx;

/**
 * Blocks of a grid or a cluster, threads of a block.
 *
 * @param x along the first axis
 * @param y along the second
 * @param z along the third
 */
public record Dim(int x, int y, int z) {
  /**
   * So many along each axis.
   *
   * @param x along the first axis
   * @param y along the second
   * @param z along the third
   * @throws GcxException.InvalidValue one is negative
   */
  public Dim {
    if (x < 0 || y < 0 || z < 0) {
      throw new GcxException.InvalidValue(
          "there is no grid or block of " + x + " by " + y + " by " + z);
    }
  }

  /**
   * So many along the first axis, 1 along the others.
   *
   * @param x along the first axis
   * @return the same as of three numbers
   */
  public static Dim of(int x) {
    return new Dim(x, 1, 1);
  }
}

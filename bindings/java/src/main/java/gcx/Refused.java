package gcx;

/** What every {@link GcxException} has. */
abstract class Refused extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The result's number. */
  private final int code;

  /** The result's name. */
  private final String resultName;

  /** What was wrong, in the C library's words. */
  private final String detail;

  Refused(int code, String resultName, String detail) {
    super(Names.inJava(detail) + " [" + resultName + ", " + code + "]");
    this.code = code;
    this.resultName = resultName;
    this.detail = detail;
  }

  /**
   * The result.
   *
   * @return the result; {@link Result#UNKNOWN} of a number that this version has no name for
   */
  public Result result() {
    return Result.of(code);
  }

  /**
   * The number of the result, which is that of a CUresult.
   *
   * @return the number
   */
  public int code() {
    return code;
  }

  /**
   * The name of the result in C.
   *
   * @return the name, such as {@code GCX_ERROR_INVALID_VALUE}
   */
  public String resultName() {
    return resultName;
  }

  /**
   * What was wrong, the values, and what would work, in the C library's words.
   *
   * @return the C library's message
   */
  public String detail() {
    return detail;
  }
}

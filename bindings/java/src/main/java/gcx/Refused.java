package gcx;

/** The fields of every {@link GcxException}. */
abstract class Refused extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;
  private final String resultName;
  private final String detail;

  Refused(int code, String resultName, String detail) {
    super(Names.inJava(detail) + " [" + resultName + ", " + code + "]");
    this.code = code;
    this.resultName = resultName;
    this.detail = detail;
  }

  /** {@return the result; {@link Result#UNKNOWN} if this version has no name for the number} */
  public Result result() {
    return Result.of(code);
  }

  /** {@return the number of the result: a CUresult's, or gcx's own from 10000 on} */
  public int code() {
    return code;
  }

  /** {@return the name of the result in C, such as {@code GCX_ERROR_INVALID_VALUE}} */
  public String resultName() {
    return resultName;
  }

  /** {@return the C library's message, which names C functions} */
  public String detail() {
    return detail;
  }
}

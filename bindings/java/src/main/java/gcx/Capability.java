package gcx;

/** What a driver can do. Where it lacks one, {@link Gcx#capability} says which version has it. */
public enum Capability {
  /** Everything that isn't named here: CUDA 12.4. */
  GREEN_CONTEXTS(FunctionsConstants.GCX_CAPABILITY_GREEN_CONTEXTS),
  /** The driver makes streams of green contexts by itself: CUDA 12.5. */
  STREAM_CREATE(FunctionsConstants.GCX_CAPABILITY_STREAM_CREATE),
  /** The driver has ids of green contexts: CUDA 13.0. */
  CONTEXT_ID(FunctionsConstants.GCX_CAPABILITY_CONTEXT_ID),
  /** The driver tells minimum and alignment of SM resources: CUDA 13.0. */
  RESOURCE_DETAILS(FunctionsConstants.GCX_CAPABILITY_RESOURCE_DETAILS),
  /** Coscheduled counts and backfill in requests: CUDA 13.1. */
  STRUCTURED_SPLIT(FunctionsConstants.GCX_CAPABILITY_STRUCTURED_SPLIT),
  /** Workqueue resources: CUDA 13.1. */
  WORKQUEUES(FunctionsConstants.GCX_CAPABILITY_WORKQUEUES),
  /** The driver tells the resources of streams that others made: CUDA 13.1. */
  STREAM_RESOURCE(FunctionsConstants.GCX_CAPABILITY_STREAM_RESOURCE),
  /** Locality domains in requests: CUDA 13.4. */
  LOCALITY_DOMAINS(FunctionsConstants.GCX_CAPABILITY_LOCALITY_DOMAINS);

  /** The number in gcx.h. */
  final int number;

  Capability(int number) {
    this.number = number;
  }

  static Capability of(int number) {
    for (Capability value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    throw new IllegalStateException(
        "gcx gave a Capability that this package doesn't know: " + number);
  }
}

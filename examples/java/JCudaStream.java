import static jcuda.runtime.JCuda.cudaFree;
import static jcuda.runtime.JCuda.cudaMalloc;
import static jcuda.runtime.JCuda.cudaMemsetAsync;

import gcx.Context;
import gcx.Device;
import gcx.Stream;
import java.lang.reflect.Constructor;
import jcuda.Pointer;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaStream_t;

/**
 * Runs JCuda on 24 SMs. Requires a GPU, and JCuda with its native libraries.
 *
 * <pre>java -cp gcx.jar:jcuda.jar:jcuda-natives.jar JCudaStream.java</pre>
 */
public final class JCudaStream {
  private JCudaStream() {}

  /**
   * Wraps a stream for JCuda, whose constructor for native streams is not public.
   *
   * @param stream a stream that stays open while JCuda uses it
   * @return the same stream
   * @throws ReflectiveOperationException this version of JCuda has no such constructor
   */
  public static cudaStream_t of(Stream stream) throws ReflectiveOperationException {
    Constructor<cudaStream_t> constructor = cudaStream_t.class.getDeclaredConstructor(long.class);
    constructor.setAccessible(true);
    return constructor.newInstance(stream.nativeHandle());
  }

  /**
   * Fills memory in the stream.
   *
   * @param arguments none
   * @throws ReflectiveOperationException see {@link #of}
   */
  public static void main(String[] arguments) throws ReflectiveOperationException {
    JCuda.setExceptionsEnabled(true);
    try (Context context = Context.create(new Device(0).sms().split(24).groups().get(0));
        Stream stream = context.createStream()) {
      Pointer memory = new Pointer();
      cudaMalloc(memory, 1 << 20);
      cudaMemsetAsync(memory, 0, 1 << 20, of(stream));
      stream.synchronize();
      cudaFree(memory);
      System.out.println("1 MiB was filled on " + stream.smCount() + " SMs");
    }
  }
}

package gcx;

/**
 * How many of the hardware's queues, the connections, the partitions of the process share. While as
 * many streams wait for something before them, every other launch of the process waits, whatever
 * SMs it has.
 *
 * @param connections that CUDA has or, if it hasn't started, would have; 0: unknown, since
 *     CUDA_DEVICE_MAX_CONNECTIONS holds something else than 1 to 32
 * @param source where the number comes from
 * @param started whether CUDA has started in the process, so that the number stays
 * @param certain false: CUDA had started before gcx looked, and the process had set the variable
 *     anew; the number is what it holds now
 * @param tooFew whether there is one alone, with which all partitions wait as soon as one stream
 *     does
 */
public record QueueInfo(
    int connections, QueueSource source, boolean started, boolean certain, boolean tooFew) {}

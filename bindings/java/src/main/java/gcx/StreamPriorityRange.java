package gcx;

/**
 * The priorities that a device's streams can have; lower is more urgent.
 *
 * @param least the least urgent
 * @param greatest the most urgent, the lowest number
 */
public record StreamPriorityRange(int least, int greatest) {}

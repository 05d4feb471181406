#include "streams.hpp"
namespace conformance {
void add_memory(Checks&) {
}
} // namespace conformance

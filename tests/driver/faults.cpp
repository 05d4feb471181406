#include "streams.hpp"
namespace conformance {
void add_faults(Checks&) {
}
} // namespace conformance

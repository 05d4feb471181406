#include "streams.hpp"
namespace conformance {
void add_first_calls(Checks&) {
}
} // namespace conformance

#include "streams.hpp"
namespace conformance {
void add_full_streams(Checks&) {
}
} // namespace conformance

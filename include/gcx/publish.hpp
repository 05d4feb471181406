// Part of gcx.hpp: published leases, which `gcx top` shows.
#pragma once

#include "error.hpp"
#include "generated/raw.hpp"

#include <vector>

namespace gcx {

// gcx_publish_start and gcx_publish_stop. nullptr: the program's name.
inline void publish_start(const char* name = nullptr) {
    check(gcx_publish_start(name));
}
inline void publish_stop() {
    check(gcx_publish_stop());
}

// gcx_published_process_list and gcx_published_lease_list. Names are any bytes: escape them.
inline std::vector<gcx_published_process> published_processes() {
    return raw::published_process_list();
}
inline std::vector<gcx_published_lease> published_leases() {
    return raw::published_lease_list();
}

} // namespace gcx

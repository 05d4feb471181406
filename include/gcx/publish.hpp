// Part of gcx.hpp: leases that other processes of the user see, as `gcx top` shows them.
#pragma once

#include "error.hpp"
#include "generated/raw.hpp"

#include <vector>

namespace gcx {

// gcx_publish_start and _stop: this process's leases. nullptr is the program's name.
inline void publish_start(const char* name = nullptr) {
    check(gcx_publish_start(name));
}
inline void publish_stop() {
    check(gcx_publish_stop());
}

// gcx_published_process_list and _lease_list. Names in them are any bytes: escape them.
inline std::vector<gcx_published_process> published_processes() {
    return raw::published_process_list();
}
inline std::vector<gcx_published_lease> published_leases() {
    return raw::published_lease_list();
}

} // namespace gcx

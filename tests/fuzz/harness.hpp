// The environment of one input, and the checks that every harness makes. gcx opens one driver in a
// process and keeps it; a fuzzer needs a new one for each input.
#pragma once

#include <gcx.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace fuzz {

// Restores the initial environment and sets GCX_DRIVER, the driver that gcx opens by default.
void begin_input(const std::string& driver);

// Returns a private folder that is removed at the end of the process. It is GCX_RESERVATION_DIR.
const std::string& folder();

// Closes the library like the end of the process, so that it can be opened again. The caller has
// released all objects.
void close_library();

// Aborts with a message, which the fuzzer reports as a find and stores the input.
[[noreturn]] void violated(const char* what, const char* detail);

inline void must(bool holds, const char* what, const char* detail = "") {
    if (!holds)
        violated(what, detail);
}

// Checks the result of any call: a failure has a text and a message and is no internal error.
gcx_result checked(gcx_result result, const char* call);
#define CALL(call) fuzz::checked((call), #call)

uint32_t sm_count_of(const gcx_resource& resource);

// Counts the SMs of the atoms that a list returned.
template <class Listed>
uint32_t count_sms(const Listed& listed, const uint64_t (&atoms)[8]) {
    uint32_t sms = 0;
    for (uint32_t atom = 0; atom < 512; atom++) {
        if ((atoms[atom / 64] >> (atom % 64) & 1) == 0)
            continue;
        must(atom < listed.atom_count, "an atom that the device doesn't have");
        sms += atom + 1 == listed.atom_count ? listed.last_atom_sm_count : listed.atom_sm_count;
    }
    return sms;
}

void replace_contents(int file, const void* data, std::size_t size);

// A file that is locked permanently, like that of a live process.
struct HostileFile {
    HostileFile(const std::string& path, short lock_type);
    std::string path;
    int file;
};

} // namespace fuzz

// A reservation of SMs: its handle in this process, acquiring it and joining it.
#pragma once

#include "core/atom_set.hpp"
#include "ipc/close_on_fork_file.hpp"
#include "ipc/reservation_record.hpp"

#include <gcx.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace gcx {
class CancelList;
class Device;
struct SmResource;
} // namespace gcx

namespace gcx::reservations {

// This process's ownership of a reservation. It ends when the object is destroyed, or when the
// process ends.
class Reservation {
  public:
    // file: owned by this process, in this directory. parent: the reservation that this one
    // divides, which stays owned as long as this one; null: none.
    Reservation(std::string dir, CloseOnForkFile file, const Record& record, uint32_t flags,
                bool joined, std::shared_ptr<Reservation> parent = nullptr)
        : dir_(std::move(dir)), name_(file_name(record)), file_(std::move(file)), record_(record),
          flags_(flags), joined_(joined), parent_(std::move(parent)) {}
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    const Record& record() const { return record_; }
    uint32_t flags() const { return flags_; }
    bool joined() const { return joined_; }
    // Returns the path of the file, by which others join.
    std::string token() const { return dir_ + "/" + name_; }
    // Returns whether the file was removed, so that other processes don't see the reservation.
    bool lost() const;

  private:
    const std::string dir_;
    const std::string name_;
    CloseOnForkFile file_;
    const Record record_;
    const uint32_t flags_;
    const bool joined_;
    const std::shared_ptr<Reservation> parent_;
};

struct ReservationRequest {
    uint32_t sm_count = 0;     // or kRest
    uint32_t min_sm_count = 0; // the smallest acceptable count; 0: sm_count
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    uint32_t flags = 0;
    uint32_t timeout_ms = 0;
    std::string name;
    std::string dir; // from reservation_dir()
    // The token of the reservation to divide, which must be in dir; empty: divides the device.
    std::string parent;
    std::optional<AtomSet> usable; // atoms that may be reserved, if free; nothing: all
    std::function<bool(const AtomSet&)> can_realise; // whether this set may be; null: all may
    std::function<bool()> cancelled;
    CancelList* cancel = nullptr; // null: nothing cancels the wait
};

// Reserves free SMs, and waits for them if the request has a timeout.
std::shared_ptr<Reservation> acquire(Device& device, const ReservationRequest& request);

// Becomes an owner of another process's reservation.
std::shared_ptr<Reservation> join(const std::string& token);
// Returns the directory of a token. Throws if the text is no token.
std::string dir_of_token(const std::string& token);

// Returns the SMs of a reservation as atoms of this process. Throws if this process sees others.
SmResource resource_of(Device& device, const Record& record);

} // namespace gcx::reservations

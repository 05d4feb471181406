// Reservations: SMs of a device that no other process has. One file each, in a folder that all
// agree on; how it is taken is in reservation_acquire.hpp.
#pragma once

#include "base/shared_folder.hpp"
#include "core/reservation_record.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gcx::reservations {

// What is found in a folder.
struct Entry {
    std::string name;
    uint32_t user; // whose file it is
    Record record;
};

// What to do with a file that is kept alive and can't be believed.
enum class Bad : uint8_t { fail, leave_out };

// Those whose names begin so, in the order of their names. tidy: the folder is locked, and what is
// dead is removed. Whether one that was inherited is dead takes 100 ms to tell.
std::vector<Entry> read_entries(const SharedFolder& folder, std::string_view prefix, Bad bad,
                                bool tidy);
// What an open file says now. Throws if that can't be read.
Record read_record(const UnforkedFile& file);

// Where holds are if a folder is named or not: "" for the user's own.
std::string folder_of(const char* named);

// A part in a reservation: lives until it is destroyed, or the process ends.
class Reservation {
  public:
    // Of a file in that folder that this process keeps alive. parent: the reservation that it is a
    // part of, which is kept alive with it; null: none.
    Reservation(std::string folder, UnforkedFile file, const Record& record, uint32_t flags,
                bool joined, std::shared_ptr<Reservation> parent = nullptr)
        : folder_(std::move(folder)), name_(file_name(record)), file_(std::move(file)),
          record_(record), flags_(flags), joined_(joined), parent_(std::move(parent)) {}
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    const Record& record() const { return record_; }
    uint32_t flags() const { return flags_; }
    bool joined() const { return joined_; }
    // The path of its file, by which others join.
    std::string token() const { return folder_ + "/" + name_; }
    // Whether somebody removed its file, so that others don't see it.
    bool lost() const;

  private:
    const std::string folder_;
    const std::string name_;
    UnforkedFile file_;
    const Record record_;
    const uint32_t flags_;
    const bool joined_;
    const std::shared_ptr<Reservation> parent_;
};

std::shared_ptr<Reservation> join(const std::string& token);
// The same, of a folder that the caller has locked, and which is the token's.
std::shared_ptr<Reservation> join_in(const SharedFolder& folder, const std::string& token);
// The folder of a token. Throws if it is none.
std::string folder_of_token(const std::string& token);

// Those of a folder, by device, the holders before those who wait. named as folder_of takes it.
std::vector<Entry> list(const char* named);

// Gives up a file that was kept alive, and removes it if nobody else keeps it. patient: looks
// twice.
void give_up(const std::string& folder, const std::string& name, UnforkedFile file,
             bool patient) noexcept;

} // namespace gcx::reservations

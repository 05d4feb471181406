#include "core/structured.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

using Request = cu::SmGroupParams;

constexpr uint32_t Request::* kFields[] = {&Request::sm_count, &Request::coscheduled_sm_count,
                                           &Request::preferred_coscheduled_sm_count,
                                           &Request::flags, &Request::locality_domain_id};

bool equal(const Request& a, const Request& b) {
    return std::all_of(std::begin(kFields), std::end(kFields),
                       [&](auto field) { return a.*field == b.*field; });
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
void put(std::string& bytes, uint64_t number) {
    for (; number >= 0x80; number >>= 7)
        bytes += static_cast<char>((number & 0x7f) | 0x80);
    bytes += static_cast<char>(number);
}

class Reader {
  public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}
    bool done() const { return position_ == bytes_.size(); }
    uint64_t number() {
        uint64_t number = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = static_cast<unsigned char>(bytes_.at(position_++));
            number |= uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80)
                return number;
        }
    }

  private:
    const std::string& bytes_;
    std::size_t position_ = 0;
};

} // namespace

std::string pack_requests(std::span<const Request> requests) {
    std::string bytes;
    for (std::size_t i = 0; i < requests.size();) {
        std::size_t end = i + 1;
        while (end < requests.size() && equal(requests[i], requests[end]))
            end++;
        unsigned present = 0;
        for (std::size_t f = 0; f < std::size(kFields); f++)
            present |= requests[i].*kFields[f] != 0 ? 1U << f : 0U;
        // Together in one byte for up to three in a row.
        put(bytes, uint64_t{end - i} << std::size(kFields) | present);
        for (const auto field : kFields) {
            if (requests[i].*field != 0)
                put(bytes, requests[i].*field);
        }
        i = end;
    }
    return bytes;
}

std::vector<Request> unpack_requests(const std::string& packed) {
    std::vector<Request> requests;
    Reader reader(packed);
    while (!reader.done()) {
        const uint64_t head = reader.number();
        Request request{};
        for (std::size_t f = 0; f < std::size(kFields); f++) {
            if ((head >> f & 1) != 0)
                request.*kFields[f] = static_cast<uint32_t>(reader.number());
        }
        requests.insert(requests.end(), head >> std::size(kFields), request);
    }
    return requests;
}

} // namespace gcx

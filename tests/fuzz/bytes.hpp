// The bytes of an input, read from the front. Behind the end, all bytes are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuzz {

class Bytes {
  public:
    Bytes(const uint8_t* data, std::size_t size) : rest_(data, size) {}

    bool empty() const { return rest_.empty(); }
    std::size_t size() const { return rest_.size(); }

    uint8_t next() {
        if (rest_.empty())
            return 0;
        const uint8_t byte = rest_.front();
        rest_ = rest_.subspan(1);
        return byte;
    }
    bool flag() { return (next() & 1) != 0; }
    uint32_t word() {
        uint32_t value = 0;
        for (int i = 0; i < 4; i++)
            value = value << 8 | next();
        return value;
    }
    // Reads a number. Small and extreme numbers, the most interesting ones, take one byte.
    uint32_t number() {
        const uint8_t byte = next();
        if (byte < 0xf0)
            return byte;
        return byte == 0xff   ? UINT32_MAX
               : byte == 0xfe ? word()
               : byte == 0xfd ? 0x80000000U
                              : byte;
    }
    // Reads a count of SMs. Byte 0 means GCX_REST, which most inputs use, and byte 255 means 0.
    uint32_t count() {
        const uint32_t value = number();
        return value == 0 ? UINT32_MAX : value == UINT32_MAX ? 0 : value;
    }
    // Selects an item of a list.
    template <class List>
    auto& of(const List& list) {
        return list[next() % std::size(list)];
    }

    // Removes and returns the first of count equal parts of the rest.
    Bytes part(std::size_t count) {
        const std::size_t length = rest_.size() / count;
        const Bytes first(rest_.data(), length);
        rest_ = rest_.subspan(length);
        return first;
    }

  private:
    std::span<const uint8_t> rest_;
};

} // namespace fuzz

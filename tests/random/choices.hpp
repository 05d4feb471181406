// The decisions of a random program. Each is made of bytes that come from a generator, a file or a
// fuzzer. The bytes are kept, so that the same decisions can be made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace random_programs {

class Source {
  public:
    virtual ~Source() = default;
    // Returns false behind the last byte.
    virtual bool next(uint8_t& byte) = 0;
};

// Never ends. Equal seeds give equal bytes (the generator is splitmix64).
class Generator : public Source {
  public:
    explicit Generator(uint64_t seed) : state_(seed) {}

    bool next(uint8_t& byte) override {
        if (left_ == 0) {
            uint64_t bits = state_ += 0x9e3779b97f4a7c15ULL;
            bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
            bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
            bits_ = bits ^ bits >> 31;
            left_ = 8;
        }
        byte = static_cast<uint8_t>(bits_);
        bits_ >>= 8;
        left_--;
        return true;
    }

  private:
    uint64_t state_;
    uint64_t bits_ = 0;
    unsigned left_ = 0;
};

// The contents of a file, or a fuzzer's input.
class Bytes : public Source {
  public:
    explicit Bytes(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}

    bool next(uint8_t& byte) override {
        if (at_ == bytes_.size())
            return false;
        byte = bytes_[at_++];
        return true;
    }

  private:
    std::vector<uint8_t> bytes_;
    std::size_t at_ = 0;
};

class Choices {
  public:
    explicit Choices(Source& source) : source_(source) {}

    // Returns 0 behind the last byte, so that an operation that has begun can end.
    uint8_t byte() {
        uint8_t value = 0;
        if (!source_.next(value)) {
            ended_ = true;
            return 0;
        }
        made_.push_back(value);
        return value;
    }
    // Returns a number below a count that is at most 65536. Uses one byte if that is enough.
    uint32_t below(uint32_t count) {
        if (count <= 1)
            return 0;
        uint32_t value = byte();
        if (count > 256)
            value = value << 8 | byte();
        return value % count;
    }
    bool chance(uint32_t of_256) { return byte() < of_256; }
    uint32_t word() {
        uint32_t value = 0;
        for (int i = 0; i < 4; i++)
            value = value << 8 | byte();
        return value;
    }
    template <class List>
    const auto& of(const List& list) {
        return list[below(static_cast<uint32_t>(std::size(list)))];
    }

    bool ended() const { return ended_; }
    const std::vector<uint8_t>& made() const { return made_; }

  private:
    Source& source_;
    std::vector<uint8_t> made_;
    bool ended_ = false;
};

} // namespace random_programs

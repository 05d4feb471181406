// A vector whose first elements lie in itself, so that the few that there are mostly take no
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace gcx {

template <class T, std::size_t kRoom>
class Few {
  public:
    Few() = default;
    // As many, made by default.
    explicit Few(std::size_t count) {
        while (size_ < count)
            emplace_back();
    }
    Few(Few&& other) noexcept { take(other); }
    Few& operator=(Few&& other) noexcept {
        if (this != &other) {
            give_up();
            take(other);
        }
        return *this;
    }
    Few(const Few&) = delete;
    Few& operator=(const Few&) = delete;
    ~Few() { give_up(); }

    template <class... Args>
    T& emplace_back(Args&&... args) {
        if (size_ == room_)
            grow();
        T* const made = std::construct_at(data_ + size_, std::forward<Args>(args)...);
        size_++;
        return *made;
    }
    void push_back(T value) { emplace_back(std::move(value)); }
    void clear() { shorten(0); }
    template <class Is>
    void remove_if(const Is& is) {
        shorten(static_cast<std::size_t>(std::remove_if(begin(), end(), is) - begin()));
    }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T* begin() { return data_; }
    const T* begin() const { return data_; }
    T* end() { return data_ + size_; }
    const T* end() const { return data_ + size_; }
    T& operator[](std::size_t index) { return data_[index]; }
    const T& operator[](std::size_t index) const { return data_[index]; }
    const T& front() const { return data_[0]; }
    const T& back() const { return data_[size_ - 1]; }

  private:
    static_assert(kRoom != 0 && std::is_nothrow_move_constructible_v<T>);

    T* own() { return reinterpret_cast<T*>(own_); }
    void grow() {
        T* const larger = std::allocator<T>().allocate(2 * room_);
        std::uninitialized_move(begin(), end(), larger);
        const std::size_t size = size_;
        const std::size_t room = 2 * room_;
        give_up();
        data_ = larger;
        size_ = size;
        room_ = room;
    }
    void shorten(std::size_t size) {
        std::destroy(data_ + size, end());
        size_ = size;
    }
    void give_up() {
        clear();
        if (data_ != own())
            std::allocator<T>().deallocate(data_, room_);
        data_ = own();
        room_ = kRoom;
    }
    // Wants to have none itself, and its own room.
    void take(Few& other) {
        if (other.data_ != other.own()) {
            data_ = std::exchange(other.data_, other.own());
            size_ = std::exchange(other.size_, 0);
            room_ = std::exchange(other.room_, kRoom);
            return;
        }
        std::uninitialized_move(other.begin(), other.end(), data_);
        size_ = other.size_;
        other.clear();
    }

    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
    alignas(T) std::byte own_[kRoom * sizeof(T)];
    T* data_ = own();
    std::size_t size_ = 0;
    std::size_t room_ = kRoom;
};

} // namespace gcx

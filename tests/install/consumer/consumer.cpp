#include <gcx.hpp>

#include <iostream>

int main() {
    try {
        const auto [parts, rest] = gcx::device(0).sms().split({108, 24});
        const gcx::stream stream{gcx::context(parts[1])};
        std::cout << "C++: " << stream.sm_ids().size() << " SMs\n";
    } catch (const gcx::error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}

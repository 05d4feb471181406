#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <elf.h>

namespace gcx::sim {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint32_t kFatbinWrapperMagic = 0x466243b1; // __fatBinC_Wrapper_t, which points to one

bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

std::string_view skip_space(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    return text;
}

std::string_view take_word(std::string_view& text) {
    text = skip_space(text);
    std::size_t end = !text.empty() && text.front() == '.' ? 1 : 0;
    while (end < text.size() && is_name(text[end]))
        end++;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    return word;
}

std::size_t type_size(std::string_view type) {
    const auto digits = type.find_first_of("0123456789");
    if (digits == std::string_view::npos)
        return 0;
    std::size_t bits = 0;
    for (const char c : type.substr(digits)) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0)
            break;
        bits = bits * 10 + static_cast<std::size_t>(c - '0');
    }
    return bits / 8;
}

std::size_t to_size(std::string_view digits) {
    std::size_t value = 0;
    for (const char c : digits)
        if (std::isdigit(static_cast<unsigned char>(c)) != 0)
            value = value * 10 + static_cast<std::size_t>(c - '0');
    return value;
}

// Reads ".param .align 8 .b8 name[24]" of a kernel's list, or a variable after ".global".
bool read_declaration(std::string_view text, std::string& name, std::size_t& align,
                      std::size_t& size) {
    std::size_t element = 0;
    align = 0;
    while (true) {
        const std::string_view word = take_word(text);
        if (word.empty())
            return false;
        if (word == ".align") {
            align = to_size(take_word(text));
        } else if (word.front() == '.') {
            if (type_size(word) != 0 && word != ".v2" && word != ".v4")
                element = type_size(word);
        } else {
            name = std::string(word);
            break;
        }
    }
    size = element;
    text = skip_space(text);
    if (text.starts_with('['))
        size = element * to_size(text.substr(0, text.find(']')));
    align = std::max({align, element, std::size_t{1}});
    return element != 0;
}

void read_parameters(std::string_view list, KernelCode& code) {
    std::size_t offset = 0;
    while (!list.empty()) {
        const auto comma = std::min(list.find(','), list.size());
        const std::string_view item = list.substr(0, comma);
        std::string name;
        std::size_t align = 1;
        std::size_t size = 0;
        if (const auto at = item.find(".param");
            at != std::string_view::npos &&
            read_declaration(item.substr(at + 6), name, align, size)) {
            offset = (offset + align - 1) / align * align;
            code.parameters.push_back({offset, size});
            offset += size;
        }
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
}

// Removes comments, so that searches find nothing in them.
std::string without_comments(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        if (text.substr(i, 2) == "//") {
            i = std::min(text.find('\n', i), text.size());
        } else if (text.substr(i, 2) == "/*") {
            const auto end = text.find("*/", i + 2);
            i = end == std::string_view::npos ? text.size() : end + 2;
        } else {
            out += text[i++];
        }
    }
    return out;
}

void read_ptx(std::string_view source, Module& module) {
    const std::string text = without_comments(source);
    require(text.find(".version") != std::string::npos && text.find(".target") != std::string::npos,
            CUDA_ERROR_INVALID_PTX);
    // cudaLaunchDevice, cudaLaunchDeviceV2, __cudaCDP2LaunchDeviceV2: the device runtime's launches
    module.dynamic_parallelism = text.find("LaunchDevice") != std::string::npos;
    std::string_view rest(text);
    while (true) {
        const auto at = rest.find(".entry");
        if (at == std::string_view::npos)
            break;
        rest.remove_prefix(at + 6);
        KernelCode code;
        code.name = std::string(take_word(rest));
        rest = skip_space(rest);
        if (rest.starts_with('(')) {
            const auto close = std::min(rest.find(')'), rest.size());
            read_parameters(rest.substr(1, close - 1), code);
            rest.remove_prefix(close);
        }
        if (!code.name.empty())
            module.kernels[code.name] = code;
    }
    for (const std::string_view space : {".global", ".const"}) {
        rest = text;
        for (auto at = rest.find(space); at != std::string_view::npos; at = rest.find(space)) {
            rest.remove_prefix(at + space.size());
            // a declaration has a blank here, unlike an instruction such as "ld.global.u32"
            std::string name;
            std::size_t align = 0;
            std::size_t size = 0;
            if (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front())) != 0 &&
                read_declaration(rest, name, align, size))
                module.globals[name] = size;
        }
    }
}

// A cubin names each kernel by its section .text.NAME.
void read_cubin(const std::byte* image, Module& module) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    require(header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_shentsize == sizeof(Elf64_Shdr) &&
                header.e_shstrndx < header.e_shnum,
            CUDA_ERROR_INVALID_IMAGE);
    const auto section = [&](unsigned index) {
        Elf64_Shdr found;
        std::memcpy(&found, image + header.e_shoff + index * sizeof found, sizeof found);
        return found;
    };
    const auto* const names =
        reinterpret_cast<const char*>(image) + section(header.e_shstrndx).sh_offset;
    for (unsigned i = 1; i < header.e_shnum; i++) {
        const std::string_view name(names + section(i).sh_name);
        if (name.starts_with(".text.")) {
            KernelCode code;
            code.name = std::string(name.substr(6));
            module.kernels[code.name] = code;
        }
    }
}

} // namespace

void read_image(const void* image, Module& module) {
    require(image != nullptr);
    const auto* const bytes = static_cast<const char*>(image);
    uint32_t magic = 0;
    std::memcpy(&magic, bytes, sizeof magic);
    if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0)
        read_cubin(static_cast<const std::byte*>(image), module);
    else if (magic == kFatbinMagic || magic == kFatbinWrapperMagic)
        module.any_name = true; // usually compressed, so that every name is accepted
    else
        read_ptx(std::string_view(bytes), module);
}

} // namespace gcx::sim

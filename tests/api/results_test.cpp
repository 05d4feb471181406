// Tests that results below 10000 have CUresult's numbers, and that each has a name and a sentence.

#include "check.hpp"

#include <gcx.h>

#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

// Returns the numbers of the results that a header declares, by their names without the prefix.
std::map<std::string, int> results_of(const char* folder_variable, const std::string& file,
                                      const std::string& prefix) {
    const char* const folder = std::getenv(folder_variable);
    CHECK(folder != nullptr);
    std::ifstream header(std::string(folder != nullptr ? folder : "") + "/" + file);
    const std::regex declaration("^ *" + prefix + R"((\w+) *= *(\d+),?)");
    std::map<std::string, int> numbers;
    std::smatch found;
    for (std::string line; std::getline(header, line);) {
        if (std::regex_search(line, found, declaration))
            numbers[found[1]] = std::stoi(found[2]);
    }
    return numbers;
}

std::map<std::string, int> own_results() {
    return results_of("GCX_TEST_INCLUDE", "common.h", "GCX_ERROR_");
}

// Results newer than the cuda.h in use are not compared.
void results_of_cuda_have_its_numbers() {
    const auto cuda = results_of("GCX_TEST_CUDA_INCLUDE", "cuda.h", "CUDA_ERROR_");
    std::size_t compared = 0;
    for (const auto& [name, number] : own_results()) {
        if (const auto found = cuda.find(name); found != cuda.end()) {
            compared++;
            CHECK_EQ(number, found->second);
        } else {
            CHECK(number >= 10000 || CUDA_VERSION < 13050); // gcx's own
        }
    }
    CHECK(compared >= 96); // as many as CUDA 12.4 has
}

gcx_result result_of(int number) {
    gcx_result result = GCX_SUCCESS;
    std::memcpy(&result, &number, sizeof result); // any int, as C lets a caller pass
    return result;
}

void results_have_names_and_sentences() {
    std::set<std::string> sentences = {gcx_result_string(GCX_SUCCESS)};
    std::set<int> numbers = {GCX_SUCCESS};
    CHECK_EQ(std::string(gcx_result_name(GCX_SUCCESS)), std::string("GCX_SUCCESS"));
    for (const auto& [name, number] : own_results()) {
        CHECK(numbers.insert(number).second);
        CHECK_EQ(std::string(gcx_result_name(result_of(number))), "GCX_ERROR_" + name);
        const std::string sentence = gcx_result_string(result_of(number));
        CHECK(sentence.size() > 5);
        CHECK(sentences.insert(sentence).second);
    }
    for (int number = -2; number < 10100; number++) {
        const std::string name = gcx_result_name(result_of(number));
        CHECK_EQ(name != "GCX_ERROR_UNRECOGNIZED", numbers.contains(number));
        CHECK(*gcx_result_string(result_of(number)) != '\0');
    }
}

void results_need_no_driver() {
    CHECK_EQ(gcx_version(), static_cast<uint32_t>(GCX_VERSION));
    CHECK_EQ(std::string(gcx_last_error_message()), std::string());
    CHECK_EQ(gcx_driver_open("libno-such-cuda.so.1"), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    CHECK(std::strstr(gcx_last_error_message(), "libno-such-cuda.so.1") != nullptr);
}

} // namespace

int main() {
    results_of_cuda_have_its_numbers();
    results_have_names_and_sentences();
    results_need_no_driver();
    return check::summary("results");
}

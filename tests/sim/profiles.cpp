// Malformed profiles, and specifications with paths.
#include "support.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace sim_test;
namespace fs = std::filesystem;

namespace {

constexpr int kInvalid = CUDA_ERROR_INVALID_VALUE;

const std::string kHead = "gcx-profile 1\nname Tiny\n";
const std::string kDevice = "compute_capability 9.0\nsm_count 20\nmemory_bytes 1073741824\n";
const std::string kStart = kHead + kDevice; // 5 lines
const std::string kGroups = "group 0 1 4 5 8 9 12 13\ngroup 2 3 6 7 10 11 14 15\n";

void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

void check_refused(const char* spec, const std::string& reason) {
    CHECK_EQ(gcx_sim_configure(spec), kInvalid);
    if (!CHECK(std::strstr(gcx_sim_last_error(), reason.c_str()) != nullptr))
        std::fprintf(stderr, "  %s: %s, where this was expected: %s\n", spec, gcx_sim_last_error(),
                     reason.c_str());
}

struct Wrong {
    std::string text;
    const char* reason;
};

std::vector<Wrong> wrong_numbers() {
    return {
        {kHead + "sm_count 0\n", "line 3: \"sm_count\" must be one number, 2 to 384, not \"0\""},
        {kHead + "sm_count -2\n", "line 3: \"sm_count\" must be one number"},
        {kHead + "sm_count 386\n", "line 3: \"sm_count\" must be one number"},
        {kHead + "sm_count 1e2\n", "line 3: \"sm_count\" must be one number"},
        {kHead + "sm_count 99999999999999999999\n", "line 3: \"sm_count\" must be one number"},
        {kHead + "sm_count 4 4\n", "line 3: \"sm_count\" must be one number"},
        {kHead + "sm_count\n", "line 3: \"sm_count\" has no value"},
        {kHead + "sm_count 131\n", "line 3: \"sm_count\" must be an even number"},
        {kHead + "compute_capability 2147483647.1\n", "line 3: \"compute_capability\" must be"},
        {kHead + "compute_capability 9\n", "line 3: \"compute_capability\" must be"},
        {kHead + "compute_capability 9.-1\n", "line 3: \"compute_capability\" must be"},
        {kHead + "compute_capability 6.1\n", "line 3: compute capabilities from 7.0 on"},
        {kHead + "driver 2147483647.2147483647\n", "line 3: \"driver\" must be a version"},
        {kHead + "driver 13.0.1\n", "line 3: \"driver\" must be a version"},
        {kHead + "driver 11.8\n", "line 3: drivers from 12.2 on"},
        {kHead + "memory_bytes 0\n", "line 3: \"memory_bytes\" must be one number"},
        {kHead + "memory_bytes 9223372036854775807\n", "line 3: \"memory_bytes\" must be"},
        {kHead + "threads_per_sm 0\n", "line 3: \"threads_per_sm\" must be one number, 1024 to"},
        {kHead + "l2_bytes 2147483648\n", "line 3: \"l2_bytes\" must be"},
        {kHead + "pci_bus 256\n", "line 3: \"pci_bus\" must be one number, 0 to 255"},
        {kHead + "max_cluster_size 4294967296\n", "line 3: \"max_cluster_size\" must be"},
        {kHead + "min_partition_size 0\n", "line 3: \"min_partition_size\" must be"},
        {kHead + "coscheduled_alignment 64\n", "line 3: \"coscheduled_alignment\" must be"},
        {kStart + "min_partition_size 12\ngpc_sizes 20\n", "line 6: min_partition_size is 12"},
    };
}

std::vector<Wrong> wrong_layouts() {
    const std::string big = kHead + "compute_capability 9.0\nsm_count 300\n";
    std::string twos = "gpc_sizes 4294966830";
    for (int i = 0; i < 299; i++)
        twos += " 2";
    const std::string family = kStart + "family coscheduled\n" + kGroups;
    return {
        {big + "memory_bytes 1073741824\n" + twos, "line 6: a GPC's size is an even number"},
        {kStart + "gpc_sizes 10 8\n", "line 6: the GPCs hold 18 SMs, not 20"},
        {kStart + "gpc_sizes 10 3 7\n", "line 6: a GPC's size is an even number"},
        {kStart + "gpc_sizes 20 2\n", "line 6: the GPCs hold 22 SMs and more, not 20"},
        {kStart + "gpc_sizes\n", "line 6: \"gpc_sizes\" has no value"},
        {kStart + "gpc_sizes 20\ngpc_sizes 20\n", "line 7: \"gpc_sizes\" was given before"},
        {kStart + "gpc_sizes 20\ngpc 0 1\n", "line 7: the GPCs were given before"},
        {kStart + "gpc 0 1\ngpc_sizes 20\n", "line 7: the GPCs were given before"},
        {kStart + "gpc 0 1 2\n", "line 6: a GPC has an even number"},
        {kStart + "gpc 0 1\ngpc 2 1\n", "line 7: SM 1 is in two GPCs"},
        {kStart + "gpc 0 1\ngpc 2 3\n", "line 6: the GPCs do not hold SM 4"},
        {kStart + "gpc 0 20\n", "line 6: \"20\" is not an SM of a device with 20"},
        {kStart + "gpc 0 -1\n", "line 6: \"-1\" is not an SM"},
        {kStart + "gpc 0 0\n", "line 6: SM 0 is listed twice"},
        {kHead + "gpc 0 1\n", "line 3: sm_count must come before"},
        {kStart + "group 0 1\n", "line 6: \"group\" must follow \"family\""},
        {kStart + "family blue\n", "line 6: the families are"},
        {family + "group 0 1\n", "line 9: SM 0 is in two groups of the family"},
        {family + "group 16 17 18 19\n", "line 9: a group of 4 SMs after groups of 8"},
        {family + "family coscheduled\n", "line 9: this family was given before"},
        {family, "line 6: the groups and the remainder of family coscheduled do not hold SM 16"},
        {family + "remainder 16 17 18 19\nremainder 0\n", "line 10: SM 0 is in two groups"},
        {family + "remainder 16 17\nremainder 18 19\n", "line 10: this family's remainder"},
        {kStart + "family coscheduled\nremainder 0 1\n", "line 6: family coscheduled has no group"},
        {kStart + "gpc_sizes 20\nfamily fine\ngroup 0 1 2 3\nremainder 4 5 6 7 8 9 10 11 12 13 14 "
                  "15 16 17 18 19\n",
         "line 7: family fine has groups of 4 SMs, where the smallest split yields 2"},
        {kStart + "locality_domain 1 0 1\n", "line 6: locality domains are numbered from 0"},
        {kStart + "gpc_sizes 20\nlocality_domain 0 0 1\nlocality_domain_sm_count 4\n",
         "line 8: a locality domain holds 2 SMs, fewer"},
        {kStart + "gpc_sizes 20\ndynamic_parallelism_sms 0 20\n", "line 7: \"20\" is not an SM"},
        {kStart + "gpc_sizes 20\ndynamic_parallelism_sms 0\n",
         "line 7: dynamic parallelism shares 2 SMs, not 1"},
        {kHead + "compute_capability 10.0\nsm_count 20\nmemory_bytes 1073741824\ngpc_sizes 20\n"
                 "dynamic_parallelism_sms 0 1\n",
         "line 7: dynamic parallelism shares SMs on compute capability 9.x alone"},
        {kStart, "line 5: the file ends without a layout"},
    };
}

std::vector<Wrong> wrong_texts() {
    using namespace std::string_literals;
    return {
        {"", "line 1: the file is empty"},
        {"\n\n# nothing\n", "line 1: the file is empty"},
        {"\x7f"
         "ELF\0\0\1"s,
         "line 1: this is not text"},
        {"sm_count 4\n", "line 1: a profile begins with \"gcx-profile 1\""},
        {"gcx-profile 2\n", "line 1: the format's version is 1, not \"2\""},
        {"gcx-profile 1", "line 1: the file ends without name"},
        {kHead + "color green\n", "line 3: unknown field \"color\""},
        {kHead + std::string(100'000, 'x'), "line 3: unknown field \"xxxxxxxx"},
        {kHead + "\xff\xfe 3\n", "line 3: unknown field \"??\""},
        {kHead + "name Another\n", "line 3: \"name\" was given before"},
        {"gcx-profile 1\nname \xff\xfe\n", "line 2: \"name\" must have at most 200 printable"},
        {"gcx-profile 1\nname " + std::string(201, 'n'), "line 2: \"name\" must have at most 200"},
        {"gcx-profile 1\nname # none\n", "line 2: \"name\" has no value"},
        {"gcx-profile 1\nname a\x1b[31m\n", "line 2: this is not text"},
        {kHead + "sm_count 20", "line 3: the file ends without compute_capability"},
    };
}

void malformed_profile_is_refused_with_line(const std::string& path) {
    for (const auto& list : {wrong_numbers(), wrong_layouts(), wrong_texts()}) {
        for (const auto& [text, reason] : list) {
            write(path, text);
            check_refused(path.c_str(), path + ": " + reason);
        }
    }
    // A long word is shortened.
    CHECK(std::strlen(gcx_sim_last_error()) < path.size() + 200);
}

// If GPCs are smaller than the alignment, groups span several of them.
void gpcs_smaller_than_group_are_joined(const std::string& path) {
    write(path, kHead + "compute_capability 9.0\nsm_count 30\nmemory_bytes 1073741824\n"
                        "gpc_sizes 6 6 6 6 6"); // and no newline
    simulate(path);
    for (const unsigned flags : {0U, 2U}) {
        const Split made = split(query(), 30, flags, 8);
        CHECK_OK(made.result);
        CHECK_EQ(made.groups.size(), std::size_t{3});
        CHECK_EQ(sm_count(made.remainder), 6U);
    }
    // Clusters still stay within GPCs.
    Primary primary;
    CHECK_EQ(primary.max_cluster(nullptr, true, 64), 6);
}

void device_smaller_than_group_has_no_group(const std::string& path) {
    write(path, kHead + "compute_capability 9.0\nsm_count 6\nmemory_bytes 1073741824\n"
                        "gpc_sizes 6\n");
    simulate(path);
    for (const unsigned flags : {0U, 2U})
        CHECK_EQ(split(query(), 1, flags, 0).result, static_cast<CUresult>(915));
    CHECK_EQ(split(query(), 6, 1, 0).groups.size(), std::size_t{3});
    // Its recording has only the fine family.
    write(path, kHead + "compute_capability 9.0\nsm_count 6\nmemory_bytes 1073741824\n"
                        "family fine\ngroup 0 1\ngroup 4 5\ngroup 2 3\n");
    simulate(path);
    const Primary primary;
    CHECK_EQ(split(query(), 6, 1, 0).groups.size(), std::size_t{3});
}

// @ begins the driver version but can also be part of a path.
void path_may_contain_at_sign(const std::string& folder) {
    const std::string good = kStart + "driver 12.8\ngpc_sizes 20\n";
    const std::string inside = folder + "/some@13.1";
    fs::create_directory(inside);
    for (const char* name : {"plain", "at@home", "at@13.0", "com,ma"})
        write(inside + "/" + name, good);
    const auto version_of = [&](const std::string& spec) {
        CHECK_EQ(gcx_sim_configure(spec.c_str()), 0);
        return driver_version();
    };
    CHECK_EQ(version_of(inside + "/plain"), 12080);
    CHECK_EQ(version_of(inside + "/plain@"), 12080);
    CHECK_EQ(version_of(inside + "/plain@13.1"), 13010);
    CHECK_EQ(version_of(inside + "/at@home"), 12080);
    CHECK_EQ(version_of(inside + "/at@home@13.1"), 13010);
    CHECK_EQ(version_of(inside + "/at@13.0@"), 12080);
    CHECK_EQ(version_of(inside + "/at@13.0@12.4"), 12040);
    CHECK_EQ(version_of(inside + "/com,ma"), 12080);
    check_refused((inside + "/at@13.0").c_str(), "No such file");
    check_refused((inside + "/plain@9.9").c_str(), "no driver \"9.9\"");
    check_refused((inside + "/plain@13.0-beta").c_str(), "no driver \"13.0-beta\"");
    // Uses the newest driver that is not newer than the recorded one.
    write(inside + "/plain", kStart + "driver 12.7\ngpc_sizes 20\n");
    CHECK_EQ(version_of(inside + "/plain"), 12050);
    write(inside + "/plain", kStart + "driver 15.1\ngpc_sizes 20\n");
    CHECK_EQ(version_of(inside + "/plain"), 13050);
}

// Names of GPUs take precedence over files; gcx_sim_spec returns an absolute path.
void gpu_name_precedes_file(const std::string& folder) {
    CHECK_EQ(chdir(folder.c_str()), 0);
    fs::create_directory("h100");
    write("2xa100", "nonsense");
    write("none", "nonsense");
    write("tiny@13.0", kStart + "gpc_sizes 20\n");
    for (const char* spec : {"h100", "2xa100", "none@13.0"}) {
        CHECK_EQ(gcx_sim_configure(spec), 0);
        CHECK_EQ(std::string(gcx_sim_spec()), spec);
    }
    check_refused("./h100", "it is a folder");
    check_refused("h10", "known are a100, h100");
    check_refused("./2xa100", "line 1");
    fs::create_directory("folder");
    check_refused("folder", "it is a folder");
    for (const char* spec : {"tiny@13.0@", "./tiny@13.0@", "h100/../tiny@13.0@12.4"}) {
        CHECK_EQ(gcx_sim_configure(spec), 0);
        CHECK_EQ(std::string(gcx_sim_spec()),
                 folder + "/tiny@13.0@" + (std::strstr(spec, "12.4") != nullptr ? "12.4" : ""));
        const std::string again = gcx_sim_spec();
        CHECK_EQ(gcx_sim_configure(again.c_str()), 0);
        CHECK_EQ(std::string(gcx_sim_spec()), again);
    }
}

void path_without_regular_file_is_refused(const std::string& folder) {
    check_refused((folder + "/nothing").c_str(), "No such file");
    const std::string pipe = folder + "/pipe";
    CHECK_EQ(mkfifo(pipe.c_str(), 0600), 0);
    check_refused(pipe.c_str(), "not a regular file");
    check_refused("/dev/zero", "not a regular file");
    const std::string large = folder + "/large";
    write(large, kHead);
    fs::resize_file(large, std::uintmax_t{100} << 20);
    check_refused(large.c_str(), "larger than 1 MiB");
}

// Wrong values in the environment are refused.
void environment_with_wrong_value_is_refused() {
    const auto refuses = [](const char* name, const char* value, const char* reason) {
        CHECK_EQ(setenv(name, value, 1), 0);
        check_refused("h100", std::string(name) + "=" + value + ": " + reason);
        CHECK_EQ(unsetenv(name), 0);
    };
    for (const char* value :
         {"x", "cuInit", "cuInit:1", "cuInit:0:2", "cuInit:1:0", "cuInit:1:-2", "cuInit:1:2x",
          "cuInit:-1:2", "cuInit:1:2:3", ":::", "*:99999999999999999999:2", "cuInit:1:99999999999"})
        refuses("GCX_SIM_FAIL", value, "the format is FUNCTION:NTH:RESULT");
    refuses("GCX_SIM_FAIL", "cuNothing:1:2", "no driver function \"cuNothing\"");
    for (const char* value : {"x", "-1", "1e3", "10 ", "99999999999999999999"})
        refuses("GCX_SIM_KERNEL_NS", value,
                "the duration of kernels with unknown names must be 0 to");
    CHECK_EQ(setenv("GCX_SIM_FAIL", "cuInit:1:2", 1), 0);
    CHECK_EQ(gcx_sim_configure("h100"), 0);
    CHECK_EQ(cuInit(0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuInit(0));
    CHECK_EQ(unsetenv("GCX_SIM_FAIL"), 0);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    const std::string folder = fs::canonical(argv[1]).string() + "/profiles-test";
    fs::remove_all(folder);
    fs::create_directory(folder);
    const std::string path = folder + "/tiny.profile";
    environment_with_wrong_value_is_refused(); // first, since GCX_SIM_FAIL is read once
    malformed_profile_is_refused_with_line(path);
    gpcs_smaller_than_group_are_joined(path);
    device_smaller_than_group_has_no_group(path);
    path_may_contain_at_sign(folder);
    path_without_regular_file_is_refused(folder);
    gpu_name_precedes_file(folder);
    fs::remove_all(folder);
    return check::summary("profiles");
}

// facts/h200-driver580-clusters.txt
#include "replay.hpp"

#include <algorithm>
#include <memory>
#include <set>

using namespace sim_test;

namespace {

struct Row {
    const char* name;
    std::vector<CUdevResource> resources; // empty: a plain stream
    bool shows_sms = false;
};

std::string row_text(Primary& primary, const Row& row) {
    const Partition part(row.resources.empty() ? std::vector<CUdevResource>{query()}
                                               : row.resources);
    CUstream stream = part.stream;
    CUstream plain = nullptr;
    if (row.resources.empty()) {
        CHECK_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
        stream = plain;
    }
    const std::vector<unsigned> sms = primary.sms(stream);
    std::string text =
        line_of({row.name, " ", sms.size(), " ", primary.max_cluster(stream, true, 1024)});
    for (const unsigned size : {1U, 2U, 4U, 8U, 16U})
        text += line_of({" ", primary.active_clusters(stream, size, 1024)});
    const CUresult launched = primary.launch_cluster(stream, 8);
    text += " " + (launched == CUDA_SUCCESS ? std::string("ok") : name_of(launched));
    if (row.shows_sms)
        text += " SMs " + ranges(sms);
    if (plain != nullptr)
        CHECK_OK(cuStreamDestroy_v2(plain));
    return text;
}

std::vector<CUdevResource> slice(const std::vector<CUdevResource>& all, long from, long to) {
    return {all.begin() + from, all.begin() + to};
}

// Returns the fine atoms, of two SMs each, that make up the resources.
std::vector<CUdevResource> same_in_fine(Primary& primary, const Split& fine,
                                        const std::vector<CUdevResource>& resources) {
    const Partition part(resources);
    const std::vector<unsigned> expected = primary.sms(part.stream);
    std::vector<CUdevResource> made;
    for (const CUdevResource& atom : fine.groups) {
        const Partition one({atom});
        const std::vector<unsigned> held = primary.sms(one.stream);
        if (std::find(expected.begin(), expected.end(), held[0]) != expected.end())
            made.push_back(atom);
    }
    CHECK_EQ(made.size() * 2, expected.size());
    return made;
}

bool no_pair_allows_16(Primary& primary, const Split& coarse) {
    for (std::size_t i = 0; i < coarse.groups.size(); i++) {
        for (std::size_t j = i + 1; j < coarse.groups.size(); j++) {
            const Partition part({coarse.groups[i], coarse.groups[j]});
            if (primary.max_cluster(part.stream, true, 1024) >= 16 ||
                primary.active_clusters(part.stream, 16, 1024) != 0)
                return false;
        }
    }
    return true;
}

struct Clusters : Log {
    std::unique_ptr<Primary> primary;
    CUdevResource device{};
    Split coarse;
    Split fine;

    std::vector<Kind> kinds() override;
    bool begin();
    void rows();
    void pairs();
};

bool Clusters::begin() {
    CHECK_OK(cuInit(0));
    primary = std::make_unique<Primary>();
    device = query();
    coarse = split(device, 32, 0, 8);
    fine = split(device, 80, 1, 2);
    return coarse.groups.size() == 15 && sm_count(coarse.remainder) == 12 &&
           fine.groups.size() == 66;
}

void Clusters::rows() {
    const Split by_24 = split(device, 1, 0, 24);
    const std::vector<CUdevResource> g0 = slice(coarse.groups, 0, 1);
    const std::vector<CUdevResource> g0_2 = slice(coarse.groups, 0, 3);
    std::vector<CUdevResource> most = slice(coarse.groups, 3, 15);
    most.push_back(coarse.remainder);
    std::vector<CUdevResource> all = coarse.groups;
    all.push_back(coarse.remainder);
    const std::vector<Row> list = {
        {"plain stream", {}},
        {"g0", g0},
        {"fine atoms with exactly g0's SMs", same_in_fine(*primary, fine, g0)},
        {"g0..g2", g0_2},
        {"fine atoms with exactly those SMs", same_in_fine(*primary, fine, g0_2)},
        {"driver split of 24, flags 0 (same SMs)", {by_24.groups[0]}},
        {"its remainder", {by_24.remainder}},
        {"g3..g14 + remainder (same SMs as that)", most},
        {"fine atoms with exactly those SMs", same_in_fine(*primary, fine, most)},
        {"driver split of 24, flags 2", {split(device, 1, 2, 24).groups[0]}, true},
        {"driver split of 24, flags 1", {split(device, 1, 1, 24).groups[0]}, true},
        {"g0..g14 + remainder", all},
        {"all 66 fine atoms", fine.groups},
        {"remainder of 12", {coarse.remainder}},
    };
    for (const Row& row : list)
        say({row_text(*primary, row)});
}

// The log has one row for three pairs.
void Clusters::pairs() {
    std::set<std::string> texts;
    for (const std::size_t other : {1U, 4U, 8U})
        texts.insert(
            row_text(*primary, {"g0+g1, g0+g4, g0+g8", {coarse.groups[0], coarse.groups[other]}}));
    CHECK_EQ(texts.size(), 1U);
    say({*texts.begin()});
}

std::vector<Kind> Clusters::kinds() {
    return {
        states("NVIDIA H200, driver 580.159.04 (CUDA 13.0), one die. Blocks of 1024 threads",
               [this] { return begin(); }),
        literal("partition                                    SMs  max   1    2    4   8  16   "
                "launch with clusters of 8"),
        {"plain stream", [this] { rows(); }},
        {"g0+g1, g0+g4, g0+g8", [this] { pairs(); }},
        states("no pair of coarse groups allows clusters of 16.",
               [this] { return no_pair_allows_16(*primary, coarse); }),
    };
}

} // namespace

std::unique_ptr<Log> sim_test::clusters_log() {
    return std::make_unique<Clusters>();
}

// Implements each operation of the vectors in C++, except those on leases.
#include "vector.hpp"

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace vectors {

const std::map<std::string, std::size_t> kInputs = {
    {"open", 1},        {"driver", 0},   {"capability", 1}, {"devices", 0},   {"device", 1},
    {"priorities", 1},  {"resource", 3}, {"info", 1},       {"queue", 1},     {"split", 4},
    {"union", 3},       {"subtract", 3}, {"overlap", 2},    {"same", 2},      {"atom", 3},
    {"map", 2},         {"sms", 1},      {"cluster", 1},    {"configure", 4}, {"context", 3},
    {"get", 3},         {"stream", 3},   {"event", 3},      {"adopt", 2},     {"probe", 1},
    {"push", 1},        {"pop", 0},      {"current", 0},    {"record", 2},    {"wait", 2},
    {"synchronize", 1}, {"query", 1},    {"elapsed", 2},    {"close", 1},     {"live", 1},
    {"limit", 1},       {"cache", 0},    {"lease", 7},      {"resize", 2},    {"prepare", 1},
    {"held", 2},        {"alone", 1},    {"leases", 1},     {"ahead", 1},     {"trim", 1}};

std::size_t Vector::inputs(const std::string& operation) {
    const auto found = kInputs.find(operation);
    if (found == kInputs.end())
        throw Broken{"there is no operation " + operation};
    return found->second;
}

Words Vector::info(const gcx_resource_info& info) const {
    Words all =
        outputs(info.device, word_of(kFamilies, info.family), info.sm_count, info.atom_count,
                info.min_partition_size, info.coscheduled_alignment, info.flags);
    const bool local = (info.flags & GCX_SM_REQUEST_LOCALITY_DOMAIN_ID) != 0;
    all.push_back(local ? std::to_string(info.locality_domain_id) : "-");
    return all;
}

Words Vector::split(const Words& in) {
    const gcx::resource from = resource(in[0]);
    const auto how = flags<gcx::split_flags>(in[1]);
    const auto wanted = requests(in[2]);
    const auto plan = [&] { return from.plan(wanted, how); };
    std::optional<decltype(plan())> planned;
    gcx_result refused = GCX_SUCCESS;
    try {
        planned = plan();
    } catch (const gcx::error& error) {
        refused = error.result();
    }
    try {
        const auto made = from.split(wanted, how);
        std::vector<uint32_t> sizes;
        for (const gcx::resource& group : made.groups) {
            keep(in[3] + "." + std::to_string(sizes.size()), group);
            sizes.push_back(group.sm_count());
        }
        keep(in[3] + ".rest", made.remainder);
        const uint32_t left = made.remainder.sm_count();
        if (!planned || planned->groups != sizes || planned->remainder != left)
            throw Broken{"the plan isn't what the split gives"};
        return outputs(list_of(sizes), left);
    } catch (const gcx::error& error) {
        if (error.result() != refused)
            throw Broken{"the plan isn't refused as the split is"};
        throw;
    }
}

Words Vector::same(const Words& in) {
    if (find<gcx::context>(in[0]) != nullptr)
        return outputs(get<gcx::context>(in[0]).id() == get<gcx::context>(in[1]).id() ? "yes"
                                                                                      : "no");
    return outputs(resource(in[0]) == resource(in[1]) ? "yes" : "no");
}

Words Vector::live(const Words& in) const {
    std::string text;
    for (const gcx_live_context& context : gcx::live_contexts(ordinal(in[0])))
        text += (text.empty() ? "" : ",") + std::to_string(context.sm_count) + "/" +
                std::to_string(context.handle_count) + "/" + std::to_string(context.stream_count) +
                "/" + std::to_string(context.flags);
    return outputs(text.empty() ? "-" : text);
}

Words Vector::of_resources(const std::string& operation, const Words& in) {
    if (operation == "info")
        return info(resource(in[0]).info());
    if (operation == "queue") {
        const gcx_resource_info info = resource(in[0]).info();
        return outputs(info.device, word_of(kScopes, info.workqueue_scope),
                       info.workqueue_concurrency_limit);
    }
    if (operation == "split")
        return split(in);
    if (operation == "union")
        return keep_counted(in[2], resource(in[0]) | resource(in[1]));
    if (operation == "subtract")
        return keep_counted(in[2], resource(in[0]) - resource(in[1]));
    if (operation == "overlap")
        return outputs(resource(in[0]).overlap(resource(in[1])));
    if (operation == "same")
        return same(in);
    if (operation == "atom")
        return keep_counted(in[2], resource(in[0]).atom(count_of(in[1])));
    if (operation == "sms")
        return outputs(ranges(resource(in[0]).sm_ids()));
    if (operation == "configure")
        return keep(in[3], resource(in[0]).configured(
                               from_word<gcx_workqueue_scope>(kScopes, in[1]), count_of(in[2])));
    return of_objects(operation, in);
}

Words Vector::of_objects(const std::string& operation, const Words& in) {
    using gcx::context, gcx::event, gcx::stream;
    if (operation == "cluster")
        return outputs(resource(in[0]).max_cluster_size());
    if (operation == "context") {
        std::vector<gcx::resource> of;
        for (const std::string& name : items(in[0]))
            of.push_back(resource(name));
        return keep(in[2], context(of, flags<gcx::context_flags>(in[1])));
    }
    if (operation == "get")
        return with<context, stream>(in[0], [&](const auto& of) {
            return keep(in[2], of.get_resource(from_word<gcx_resource_type>(kTypes, in[1])));
        });
    if (operation == "stream") {
        stream made = with<context, gcx::lease>(
            in[0], [&](const auto& of) { return stream(of, ordinal(in[1])); });
        const gcx_stream_info info = made.info();
        keep(in[2], std::move(made));
        return outputs(info.device, info.priority, info.sm_count);
    }
    if (operation == "event")
        return keep(in[2], event(ordinal(in[0]), flags<gcx::event_flags>(in[1])));
    if (operation == "adopt")
        return with<stream, event>(in[0], [&](const auto& of) {
            return keep(in[1], std::decay_t<decltype(of)>::from_native(of.native()));
        });
    if (operation == "probe")
        return outputs(ranges(get<stream>(in[0]).sm_ids()));
    if (operation == "record")
        return with<context, stream>(
            in[0], [&](const auto& of) { return of.record(get<event>(in[1])), Words(); });
    if (operation == "wait")
        return with<context, stream>(
            in[0], [&](const auto& of) { return of.wait(get<event>(in[1])), Words(); });
    if (operation == "synchronize")
        return with<context, stream, event, gcx::lease>(
            in[0], [](const auto& of) { return of.synchronize(), Words(); });
    if (operation == "query")
        return with<stream, event, gcx::lease>(in[0], [](const auto& of) {
            if (!of.query())
                throw gcx::error(GCX_ERROR_NOT_READY, "not yet");
            return Words();
        });
    if (operation == "elapsed")
        return get<event>(in[1]).elapsed_since(get<event>(in[0])), Words();
    if (operation == "close")
        return with<context, stream, event, gcx::lease>(
            in[0], [](auto& of) { return of.close(), Words(); });
    return of_leases(operation, in);
}

Words Vector::run(const std::string& operation, const Words& in) {
    if (operation == "open") {
        gcx::open_driver(in[0].c_str());
        before_ = gcx::cache_stats();
        opened = true;
        return {};
    }
    if (operation == "driver")
        return outputs(gcx::driver_info().version, gcx::driver_info().simulated);
    if (operation == "capability")
        return outputs(int{gcx::driver_info().capabilities[ordinal(in[0])]});
    if (operation == "devices")
        return outputs(gcx::device::count());
    if (operation == "device") {
        const gcx_device_info info = gcx::device(ordinal(in[0])).info();
        return outputs(info.compute_capability_major, info.compute_capability_minor, info.sm_count,
                       info.name);
    }
    if (operation == "priorities") {
        const auto range = gcx::device(ordinal(in[0])).stream_priority_range();
        return outputs(range.least, range.greatest);
    }
    if (operation == "resource")
        return keep(
            in[2],
            gcx::device(ordinal(in[0])).get_resource(from_word<gcx_resource_type>(kTypes, in[1])));
    if (operation == "map")
        return gcx::device(ordinal(in[0])).map_sms(from_word<gcx_sm_family>(kFamilies, in[1])),
               Words();
    if (operation == "push") {
        get<gcx::context>(in[0]).push();
        pushed_++;
        return {};
    }
    if (operation == "pop") {
        const gcx_context popped = gcx::context::pop();
        pushed_--;
        return outputs(name_of(popped));
    }
    if (operation == "current")
        return outputs(name_of(gcx::context::current()));
    if (operation == "live")
        return live(in);
    if (operation == "limit")
        return gcx::set_cache_limit(count_of(in[0])), Words();
    if (operation == "trim")
        return outputs(gcx::trim_cache(count_of(in[0])).contexts);
    if (operation == "ahead") {
        std::vector<gcx::resource> wanted;
        for (const std::string& name : items(in[0]))
            wanted.push_back(resource(name));
        return gcx::prepare_contexts(wanted), Words();
    }
    if (operation == "cache") {
        const gcx_cache_stats now = gcx::cache_stats();
        return outputs(now.in_use, now.cached, now.hits - before_.hits, now.misses - before_.misses,
                       now.evicted - before_.evicted);
    }
    return of_resources(operation, in);
}

void Vector::end() {
    for (; pushed_ > 0; pushed_--)
        gcx::context::pop();
    while (!objects_.empty()) {
        std::visit(
            [](auto& of) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(of)>, gcx::resource>)
                    of.close();
            },
            objects_.back().second);
        objects_.pop_back();
    }
    if (opened && !gcx::live_contexts().empty())
        throw Broken{"a context is left alive at the end"};
}

} // namespace vectors

// Runs the vectors of one file through gcx.hpp, whose members call gcx.h: see README.md.
#include <gcx.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using Words = std::vector<std::string>;

// The file is wrong, or gcx is in a state that no step expects.
struct Broken {
    std::string why;
};

Words split_at(const std::string& text, char separator) {
    Words words;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, separator);)
        words.push_back(word);
    return words;
}

long number(const std::string& text) {
    std::size_t used = 0;
    long value = 0;
    try {
        value = std::stol(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size())
        throw Broken{text + " is no number"};
    return value;
}

uint32_t count_of(const std::string& text) {
    return static_cast<uint32_t>(number(text));
}
// Reads a count of SMs, or "rest".
long sms_of(const std::string& text) {
    return text == "rest" ? long{gcx::rest} : number(text);
}
int32_t ordinal(const std::string& text) {
    return static_cast<int32_t>(number(text));
}

const std::map<std::string, int> kTypes = {{"sm", gcx::type::sm},
                                           {"workqueue-config", gcx::type::workqueue_config},
                                           {"workqueue", gcx::type::workqueue}};
const std::map<std::string, int> kFamilies = {{"none", gcx::family::none},
                                              {"coscheduled", gcx::family::coscheduled},
                                              {"fine", gcx::family::fine},
                                              {"max-cluster", gcx::family::max_cluster},
                                              {"structured", gcx::family::structured},
                                              {"external", gcx::family::external}};
const std::map<std::string, int> kScopes = {{"device_ctx", gcx::scope::device_ctx},
                                            {"green_ctx_balanced", gcx::scope::green_ctx_balanced}};
const std::map<std::string, int> kFlags = {
    {"-", 0},
    {"fine", static_cast<int>(gcx::split_flags::fine)},
    {"max-cluster", static_cast<int>(gcx::split_flags::max_cluster)},
    {"exact", static_cast<int>(gcx::split_flags::exact)},
    {"exclude_leased", static_cast<int>(gcx::split_flags::exclude_leased)},
    {"shared", static_cast<int>(gcx::lease_flags::shared)},
    {"deferred", static_cast<int>(gcx::resize_flags::deferred)},
    {"private", static_cast<int>(gcx::context_flags::private_)},
    {"timing", static_cast<int>(gcx::event_flags::timing)},
    {"blocking", static_cast<int>(gcx::event_flags::blocking_sync)}};

template <class Enum>
Enum from_word(const std::map<std::string, int>& words, const std::string& word) {
    const auto found = words.find(word);
    return static_cast<Enum>(found != words.end() ? found->second : static_cast<int>(number(word)));
}

std::string word_of(const std::map<std::string, int>& words, int value) {
    for (const auto& [word, number] : words)
        if (number == value)
            return word;
    return "?";
}

template <class Flags>
Flags flags(const std::string& text) {
    int all = 0;
    for (const std::string& word : split_at(text, '+'))
        all |= from_word<int>(kFlags, word);
    return static_cast<Flags>(all);
}

Words items(const std::string& list) {
    return list == "-" ? Words() : split_at(list, ',');
}

template <class Numbers>
std::string list_of(const Numbers& numbers) {
    std::string text;
    for (const auto value : numbers)
        text += (text.empty() ? "" : ",") + std::to_string(value);
    return text.empty() ? "-" : text;
}

std::string ranges(const std::vector<uint32_t>& ids) {
    std::string text;
    for (std::size_t first = 0, next = 0; first < ids.size(); first = next) {
        for (next = first + 1; next < ids.size() && ids[next] == ids[next - 1] + 1;)
            next++;
        text += (text.empty() ? "" : ",") + std::to_string(ids[first]);
        if (next - first > 1)
            text += "-" + std::to_string(ids[next - 1]);
    }
    return text.empty() ? "-" : text;
}

std::vector<gcx::request> requests(const std::string& list) {
    std::vector<gcx::request> wanted;
    for (const std::string& item : items(list)) {
        const Words fields = split_at(item, '/');
        gcx::request request(sms_of(fields.at(0)));
        if (fields.size() == 5) {
            request.coscheduled_sm_count = count_of(fields[1]);
            request.preferred_coscheduled_sm_count = count_of(fields[2]);
            request.flags = count_of(fields[3]);
            request.locality_domain_id = count_of(fields[4]);
        }
        wanted.push_back(request);
    }
    return wanted;
}

template <class... Fields>
Words outputs(const Fields&... fields) {
    const auto text = [](const auto& field) {
        std::ostringstream out;
        out << field;
        return out.str();
    };
    return {text(fields)...};
}

using Object = std::variant<gcx::resource, gcx::context, gcx::stream, gcx::event, gcx::lease>;

class Vector {
  public:
    Vector() {
        if (opened)
            before_ = gcx::cache_stats();
    }
    // Returns the outputs of a step. Throws gcx::error.
    Words run(const std::string& operation, const Words& in);
    // Destroys the vector's objects, and checks that nothing is left.
    void end();
    static std::size_t inputs(const std::string& operation);

  private:
    static inline bool opened = false;

    template <class Kind>
    Kind* find(const std::string& name) {
        for (auto& [known, object] : objects_)
            if (known == name)
                return std::get_if<Kind>(&object);
        return nullptr;
    }
    template <class Kind>
    Kind& get(const std::string& name) {
        if (Kind* const found = find<Kind>(name))
            return *found;
        throw Broken{"there is no " + name + " of this kind"};
    }
    gcx::resource resource(const std::string& name) {
        return name == "zero" ? gcx::resource() : get<gcx::resource>(name);
    }
    Words keep(const std::string& name, Object object) {
        objects_.emplace_back(name, std::move(object));
        return {};
    }
    Words keep_counted(const std::string& name, const gcx::resource& of) {
        keep(name, of);
        return outputs(of.sm_count());
    }
    std::string name_of(gcx_context handle) const {
        for (const auto& [name, object] : objects_)
            if (const auto* context = std::get_if<gcx::context>(&object))
                if (handle != nullptr && context->handle() == handle)
                    return name;
        return "-";
    }
    // Calls a function with the object of this name, of whichever of these kinds it is.
    template <class... Kinds, class What>
    auto with(const std::string& name, const What& what) {
        std::optional<std::common_type_t<std::invoke_result_t<const What&, Kinds&>...>> answer;
        const auto attempt = [&](auto* object) {
            if (object != nullptr)
                answer = what(*object);
        };
        (attempt(find<Kinds>(name)), ...);
        if (!answer)
            throw Broken{"there is no " + name + " of this kind"};
        return std::move(*answer);
    }

    Words of_resources(const std::string& operation, const Words& in);
    Words of_objects(const std::string& operation, const Words& in);
    Words of_leases(const std::string& operation, const Words& in);
    std::vector<gcx::lease_size> sizes(const std::string& list);
    Words info(const gcx_resource_info& info) const;
    Words split(const Words& in);
    Words same(const Words& in);
    Words live(const Words& in) const;

    std::vector<std::pair<std::string, Object>> objects_;
    std::set<std::string> closed_;
    gcx_cache_stats before_ = GCX_CACHE_STATS_INIT;
    int pushed_ = 0;
};

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
        return with<context, stream, event, gcx::lease>(in[0], [&](auto& of) {
            const auto handle = of.handle();
            of.close();
            of = std::decay_t<decltype(of)>::adopt(handle); // stale, for later steps
            closed_.insert(in[0]);
            return Words();
        });
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
    for (; !objects_.empty(); objects_.pop_back()) {
        if (closed_.count(objects_.back().first) != 0)
            continue;
        std::visit(
            [](auto& of) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(of)>, gcx::resource>)
                    of.close();
            },
            objects_.back().second);
    }
    if (opened && !gcx::live_contexts().empty())
        throw Broken{"a context is left alive at the end"};
}

// Reads a list of NAME/COUNT.
std::vector<gcx::lease_size> Vector::sizes(const std::string& list) {
    std::vector<gcx::lease_size> sizes;
    for (const std::string& item : items(list)) {
        const Words fields = split_at(item, '/');
        const auto& lease = get<gcx::lease>(fields.at(0));
        if (fields.at(1) == "parked")
            sizes.emplace_back(lease, gcx::parked);
        else
            sizes.emplace_back(lease, sms_of(fields.at(1)));
    }
    return sizes;
}

Words Vector::of_leases(const std::string& operation, const Words& in) {
    if (operation == "lease") {
        gcx::lease_params params;
        params.name = in[6];
        params.flags = flags<gcx::lease_flags>(in[2]);
        params.family = from_word<gcx_sm_family>(kFamilies, in[3]);
        params.min_sm_count = count_of(in[4]);
        params.exclusive_sm_count = count_of(in[5]);
        gcx::lease made(ordinal(in[0]), sms_of(in[1]), params);
        const uint32_t sms = made.sm_count();
        keep(in[6], std::move(made));
        return outputs(sms);
    }
    if (operation == "resize") {
        gcx::resize(sizes(in[0]), flags<gcx::resize_flags>(in[1]));
        std::vector<uint32_t> now;
        for (const std::string& item : items(in[0]))
            now.push_back(get<gcx::lease>(split_at(item, '/').at(0)).sm_count());
        return outputs(list_of(now));
    }
    if (operation == "prepare")
        return gcx::prepare(sizes(in[0])), Words();
    if (operation == "held")
        return keep_counted(in[1], get<gcx::lease>(in[0]).get_resource());
    if (operation == "alone")
        return outputs(get<gcx::lease>(in[0]).info().exclusive_sm_count);
    std::string text;
    for (const gcx_live_lease& lease : gcx::live_leases(ordinal(in[0])))
        text += (text.empty() ? "" : ",") + std::to_string(lease.sm_count) + "/" +
                std::to_string(lease.stream_count) + "/" + std::to_string(lease.flags);
    return outputs(text.empty() ? "-" : text);
}

// Runs a step; returns an empty text if it answers as expected.
std::string difference(Vector& vector, const Words& fields) {
    const std::size_t inputs = Vector::inputs(fields.at(0));
    if (fields.size() < 2 + inputs)
        throw Broken{"too few fields for " + fields[0]};
    const auto past_inputs = fields.begin() + 2 + static_cast<std::ptrdiff_t>(inputs);
    const Words in(fields.begin() + 2, past_inputs);
    const Words expected(past_inputs, fields.end());
    try {
        const Words got = vector.run(fields[0], in);
        if (fields[1] != "GCX_SUCCESS")
            return "expected " + fields[1] + ", got success";
        std::string text = "expected and got";
        for (const Words& words : {expected, got})
            for (const std::string& word : words)
                text += (&word == words.data() ? ": " : " ") + word;
        return got == expected ? "" : text;
    } catch (const gcx::error& error) {
        if (error.name() != fields[1])
            return "expected " + fields[1] + ", got " + error.what();
        for (const std::string& piece : expected.empty() ? Words() : split_at(expected[0], '|'))
            if (std::string_view(error.what()).find(piece) == std::string_view::npos)
                return "the message lacks " + piece + ": " + error.what();
        return "";
    }
}

} // namespace

int main(int argc, char** argv) {
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) {
        std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    unsigned agree = 0;
    unsigned differ = 0;
    unsigned line_number = 0;
    std::string name;
    std::optional<Vector> vector;
    bool differs = false;
    const auto attempt = [&](const std::string& what, const std::function<std::string()>& step) {
        std::string why;
        try {
            why = step();
        } catch (const Broken& broken) {
            why = broken.why;
        } catch (const gcx::error& error) {
            why = error.what();
        }
        if (!why.empty())
            std::printf("%s:%u: %s: %s: %s\n", argv[1], line_number, name.c_str(), what.c_str(),
                        why.c_str());
        differs = differs || !why.empty();
    };
    const auto end = [&] {
        if (!vector)
            return;
        attempt("end", [&] { return vector->end(), std::string(); });
        vector.reset();
        (differs ? differ : agree)++;
    };
    for (std::string line; std::getline(file, line);) {
        line_number++;
        const Words fields = split_at(line, '\t');
        if (fields.empty() || line[0] == '#')
            continue;
        if (fields[0] == "vector") {
            end();
            name = fields.at(1);
            differs = false;
            vector.emplace();
        } else if (vector && !differs) {
            attempt(fields[0], [&] { return difference(*vector, fields); });
        }
    }
    end();
    std::printf("%s: %u vectors agree, %u differ, 0 left out\n", argv[1], agree, differ);
    return agree != 0 && differ == 0 ? 0 : 1;
}

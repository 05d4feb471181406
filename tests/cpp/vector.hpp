// A vector's objects and operations.
#pragma once

#include "vectors.hpp"

#include <gcx.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace vectors {

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
    gcx_cache_stats before_ = GCX_CACHE_STATS_INIT;
    int pushed_ = 0;
};

} // namespace vectors

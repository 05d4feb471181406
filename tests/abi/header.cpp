// gcx.hpp alone, twice, and with its templates in use.
#include <gcx.hpp>

#include <vector>

uint32_t use(const std::vector<uint32_t>& counts);
uint32_t use(const std::vector<uint32_t>& counts) {
    const auto split = gcx::device(0).sms().split(counts);
    const auto [parts, rest] = split.remainder.split({8, gcx::request(16).backfill()});
    const gcx::context context({parts[0], parts[1]});
    const gcx::stream stream(context);
    gcx::set_log(gcx::log_level::info, [](gcx_log_level, std::string_view) {});
    return context.sm_count() + stream.sm_count() + rest.plan({1}).remainder;
}

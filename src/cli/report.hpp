// What a command hands back to main, which alone prints.
#pragma once

#include "cli/args.hpp"
#include "cli/json.hpp"
#include "cli/live.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gcx::cli {

struct Report {
    Json json = Json::object(); // printed with --json
    std::string text;           // printed without; ends with a newline
    // What doesn't hold. Printed on standard error.
    std::vector<std::string> problems;
    int status = 1;           // the exit status if there is a problem
    std::optional<Live> live; // shown in the place of all that, until the user ends it
};

Report run_info(const Arguments& arguments);
Report run_plan(const Arguments& arguments);
Report run_split(const Arguments& arguments);
Report run_verify(const Arguments& arguments);
Report run_bench(const Arguments& arguments);
Report run_bench_repartition(const Arguments& arguments);
Report run_bench_isolation(const Arguments& arguments);
Report run_exec(const Arguments& arguments);
Report run_ps(const Arguments& arguments);
Report run_top(const Arguments& arguments);
Report run_sim_list(const Arguments& arguments);
Report run_sim_run(const Arguments& arguments);

} // namespace gcx::cli

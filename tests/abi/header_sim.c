/* gcx_sim.h alone. */
#include <gcx_sim.h>

int check_sim_header(void);

int check_sim_header(void) {
    gcx_sim_counts counts = {0};
    return counts.calls == 0;
}

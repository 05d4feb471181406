// The hardware's queues, which the streams of a process share.

#include "api/guard.hpp"
#include "driver/connections.hpp"

using namespace gcx;

gcx_result gcx_queue_get_info(gcx_queue_info* info) {
    GCX_BODY({
        check_size(info, "info");
        refuse_after_fork();
        const Connections found = connections(default_choice());
        info->connections = found.count;
        info->source =
            found.from_environment ? GCX_QUEUE_SOURCE_ENVIRONMENT : GCX_QUEUE_SOURCE_DEFAULT;
        info->started = found.started ? 1 : 0;
        info->certain = found.certain ? 1 : 0;
        info->too_few = found.count == 1 ? 1 : 0;
    });
}

gcx_result gcx_queue_request_connections(uint32_t connections) {
    GCX_BODY({
        if (connections == 0 || connections > GCX_MAX_CONNECTIONS)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("connections is %u; CUDA takes 1 to %u", connections, GCX_MAX_CONNECTIONS));
        refuse_after_fork();
        request_connections(default_choice(), connections);
    });
}

// The variants for programs compiled so that a NULL stream is the thread's own: cuStreamQuery_ptsz
// and so on. Each calls the plain function with that meaning.
#include "sim/edge/entry.hpp"

namespace gcx::sim {
namespace {

class PerThread {
  public:
    PerThread() : before_(per_thread_stream()) { per_thread_stream() = true; }
    ~PerThread() { per_thread_stream() = before_; }
    PerThread(const PerThread&) = delete;
    PerThread& operator=(const PerThread&) = delete;

  private:
    bool before_;
};

} // namespace

#define GCX_SIM_PER_THREAD(name, suffix, parameters, arguments)                                    \
    extern "C" CUresult CUDAAPI sim_##name parameters __asm__(#name);                              \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name##suffix parameters __asm__(              \
        #name #suffix);                                                                            \
    CUresult CUDAAPI sim_##name##suffix parameters {                                               \
        const PerThread scope;                                                                     \
        return sim_##name arguments;                                                               \
    }

// clang-format off
GCX_SIM_PER_THREAD(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
GCX_SIM_PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz, (CUstream stream, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* p3, std::size_t count, CUstreamCaptureMode mode), (stream, graph, dependencies, p3, count, mode))
GCX_SIM_PER_THREAD(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* out), (stream, out))
GCX_SIM_PER_THREAD(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz, (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count), (stream, status, id, graph, dependencies, count))
GCX_SIM_PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz, (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies, const CUgraphEdgeData** edges, std::size_t* count), (stream, status, id, graph, dependencies, edges, count))
GCX_SIM_PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags), (stream, nodes, count, flags))
GCX_SIM_PER_THREAD(cuStreamUpdateCaptureDependencies_v2, _ptsz, (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* p2, std::size_t count, unsigned flags), (stream, nodes, p2, count, flags))
GCX_SIM_PER_THREAD(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), (to, from, bytes))
GCX_SIM_PER_THREAD(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream), (to, from, bytes, stream))
GCX_SIM_PER_THREAD(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void* from, std::size_t bytes), (to, from, bytes))
GCX_SIM_PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream), (to, from, bytes, stream))
GCX_SIM_PER_THREAD(cuMemcpyDtoH_v2, _ptds, (void* to, CUdeviceptr from, std::size_t bytes), (to, from, bytes))
GCX_SIM_PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz, (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream), (to, from, bytes, stream))
GCX_SIM_PER_THREAD(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), (to, from, bytes))
GCX_SIM_PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream), (to, from, bytes, stream))
GCX_SIM_PER_THREAD(cuMemcpyPeer, _ptds, (CUdeviceptr to, CUcontext p1, CUdeviceptr from, CUcontext p3, std::size_t bytes), (to, p1, from, p3, bytes))
GCX_SIM_PER_THREAD(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr to, CUcontext p1, CUdeviceptr from, CUcontext p3, std::size_t bytes, CUstream stream), (to, p1, from, p3, bytes, stream))
GCX_SIM_PER_THREAD(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* parameters), (parameters))
GCX_SIM_PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* parameters), (parameters))
GCX_SIM_PER_THREAD(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* parameters, CUstream stream), (parameters, stream))
GCX_SIM_PER_THREAD(cuMemsetD8_v2, _ptds, (CUdeviceptr to, unsigned char value, std::size_t count), (to, value, count))
GCX_SIM_PER_THREAD(cuMemsetD16_v2, _ptds, (CUdeviceptr to, unsigned short value, std::size_t count), (to, value, count))
GCX_SIM_PER_THREAD(cuMemsetD32_v2, _ptds, (CUdeviceptr to, unsigned value, std::size_t count), (to, value, count))
GCX_SIM_PER_THREAD(cuMemsetD8Async, _ptsz, (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream), (to, value, count, stream))
GCX_SIM_PER_THREAD(cuMemsetD16Async, _ptsz, (CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream), (to, value, count, stream))
GCX_SIM_PER_THREAD(cuMemsetD32Async, _ptsz, (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream), (to, value, count, stream))
GCX_SIM_PER_THREAD(cuMemsetD2D8_v2, _ptds, (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height), (to, pitch, value, width, height))
GCX_SIM_PER_THREAD(cuMemsetD2D32_v2, _ptds, (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height), (to, pitch, value, width, height))
GCX_SIM_PER_THREAD(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream))
GCX_SIM_PER_THREAD(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags), (event, stream, flags))
GCX_SIM_PER_THREAD(cuStreamWaitEvent, _ptsz, (CUstream stream_handle, CUevent handle, unsigned flags), (stream_handle, handle, flags))
GCX_SIM_PER_THREAD(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters), (out, graph, parameters))
GCX_SIM_PER_THREAD(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream))
GCX_SIM_PER_THREAD(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream handle), (exec, handle))
GCX_SIM_PER_THREAD(cuLaunchKernel, _ptsz, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra))
GCX_SIM_PER_THREAD(cuLaunchCooperativeKernel, _ptsz, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters))
GCX_SIM_PER_THREAD(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* launch_config, CUfunction function, void** parameters, void** extra), (launch_config, function, parameters, extra))
GCX_SIM_PER_THREAD(cuMemAllocAsync, _ptsz, (CUdeviceptr* out, std::size_t bytes, CUstream stream), (out, bytes, stream))
GCX_SIM_PER_THREAD(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream), (out, bytes, pool, stream))
GCX_SIM_PER_THREAD(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream handle), (address, handle))
GCX_SIM_PER_THREAD(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (to, from))
GCX_SIM_PER_THREAD(cuStreamGetAttribute, _ptsz, (CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* out), (handle, attribute, out))
GCX_SIM_PER_THREAD(cuStreamSetAttribute, _ptsz, (CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value), (handle, attribute, value))
GCX_SIM_PER_THREAD(cuStreamQuery, _ptsz, (CUstream handle), (handle))
GCX_SIM_PER_THREAD(cuStreamSynchronize, _ptsz, (CUstream handle), (handle))
GCX_SIM_PER_THREAD(cuStreamGetPriority, _ptsz, (CUstream handle, int* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext* out), (handle, out))
GCX_SIM_PER_THREAD(cuStreamGetCtx_v2, _ptsz, (CUstream handle, CUcontext* out, CUgreenCtx* green), (handle, out, green))
GCX_SIM_PER_THREAD(cuStreamGetDevResource, _ptsz, (CUstream handle, CUdevResource* resource, CUdevResourceType type), (handle, resource, type))
GCX_SIM_PER_THREAD(cuStreamAddCallback, _ptsz, (CUstream handle, CUstreamCallback callback, void* data, unsigned flags), (handle, callback, data, flags))
GCX_SIM_PER_THREAD(cuStreamAttachMemAsync, _ptsz, (CUstream handle, CUdeviceptr p1, std::size_t p2, unsigned p3), (handle, p1, p2, p3))
GCX_SIM_PER_THREAD(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn function, void* data), (handle, function, data))
// clang-format on

} // namespace gcx::sim

"""The interfaces of other packages on gcx, for migration by changing an import.

gcx.compat.flashinfer has the functions of flashinfer.green_ctx, gcx.compat.torch the class of
torch.cuda.green_contexts, gcx.compat.sglang the functions of sgl_kernel.spatial, and
gcx.compat.tensorrt_llm those of TensorRT-LLM's green_context. All need PyTorch, which they import
at the first call.
"""

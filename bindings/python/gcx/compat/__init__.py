"""The interfaces of other packages on top of gcx, to move over without rewriting.

gcx.compat.flashinfer has the functions of flashinfer.green_ctx, gcx.compat.torch the class of
torch.cuda.green_contexts, gcx.compat.sglang the functions of sgl_kernel.spatial, and
gcx.compat.tensorrt_llm those of TensorRT-LLM's green_context. All need PyTorch, which is imported
at the first call.
"""

/** SM partitioning for NVIDIA GPUs: streams whose kernels run on a part of the SMs. */
module gcx {
  exports gcx;
}

// The probe's kernel. PTX, which every driver compiles for its GPU, so that no CUDA compiler is
// needed to build gcx.
#pragma once

namespace gcx {

// gcx_probe(uint32_t* counts, uint32_t max_sms, uint32_t spin_ns): each block adds one to the
// count of the SM that it runs on, and stays there for spin_ns, so that blocks beside it must
// go to the other SMs.
inline constexpr char kProbeKernelName[] = "gcx_probe";
inline constexpr char kProbeKernelPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64

.visible .entry gcx_probe(
    .param .u64 counts,
    .param .u32 max_sms,
    .param .u32 spin_ns
)
{
    .reg .pred  %p<4>;
    .reg .b32   %r<6>;
    .reg .b64   %rd<9>;

    ld.param.u64    %rd1, [counts];
    ld.param.u32    %r1, [max_sms];
    ld.param.u32    %r2, [spin_ns];
    mov.u64         %rd2, %globaltimer;

    mov.u32         %r3, %tid.x;
    setp.ne.u32     %p1, %r3, 0;
    @%p1 bra        SPIN;
    mov.u32         %r4, %smid;
    setp.ge.u32     %p2, %r4, %r1;
    @%p2 bra        SPIN;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.u32    %rd4, %r4, 4;
    add.s64         %rd5, %rd3, %rd4;
    red.global.add.u32 [%rd5], 1;

SPIN:
    cvt.u64.u32     %rd6, %r2;
SPIN_MORE:
    mov.u64         %rd7, %globaltimer;
    sub.s64         %rd8, %rd7, %rd2;
    setp.lt.u64     %p3, %rd8, %rd6;
    @%p3 bra        SPIN_MORE;
    ret;
}
)";

} // namespace gcx

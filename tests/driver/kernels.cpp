// All kernels end by themselves.
#include "kernels.hpp"

namespace conformance {

const char kKernels[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 gcx_variable = 7;
.visible .global .align 4 .b8 gcx_counts[4096];

.visible .entry gcx_spin(.param .u64 duration)
{
    .reg .pred %p<2>;
    .reg .b64  %rd<5>;
    ld.param.u64 %rd1, [duration];
    mov.u64      %rd2, %globaltimer;
MORE:
    mov.u64      %rd3, %globaltimer;
    sub.s64      %rd4, %rd3, %rd2;
    setp.lt.u64  %p1, %rd4, %rd1;
    @%p1 bra     MORE;
    ret;
}

.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)
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
    mul.wide.u32    %rd4, %r4, 4;
    add.s64         %rd5, %rd1, %rd4;
    red.global.add.u32 [%rd5], 1;
SPIN:
    cvt.u64.u32     %rd6, %r2;
MORE:
    mov.u64         %rd7, %globaltimer;
    sub.s64         %rd8, %rd7, %rd2;
    setp.lt.u64     %p3, %rd8, %rd6;
    @%p3 bra        MORE;
    ret;
}

.visible .entry gcx_store(.param .u64 to, .param .u32 value, .param .u64 after_ns)
{
    .reg .pred %p<2>;
    .reg .b32  %r<2>;
    .reg .b64  %rd<6>;
    ld.param.u64 %rd1, [after_ns];
    mov.u64      %rd2, %globaltimer;
MORE:
    mov.u64      %rd3, %globaltimer;
    sub.s64      %rd4, %rd3, %rd2;
    setp.lt.u64  %p1, %rd4, %rd1;
    @%p1 bra     MORE;
    ld.param.u64 %rd5, [to];
    ld.param.u32 %r1, [value];
    st.volatile.global.u32 [%rd5], %r1;
    membar.sys;
    ret;
}

.visible .entry gcx_load(.param .u64 to, .param .u64 from)
{
    .reg .b32  %r<2>;
    .reg .b64  %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.volatile.global.u32 %r1, [%rd2];
    st.volatile.global.u32 [%rd1], %r1;
    membar.sys;
    ret;
}

.visible .entry gcx_add(.param .u64 to, .param .u32 value)
{
    .reg .b32  %r<4>;
    .reg .b64  %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.volatile.global.u32 %r2, [%rd1];
    mad.lo.u32   %r3, %r2, 3, %r1;
    st.volatile.global.u32 [%rd1], %r3;
    membar.sys;
    ret;
}

.visible .entry gcx_wait(.param .u64 flag, .param .u64 limit_ns)
{
    .reg .pred %p<3>;
    .reg .b32  %r<2>;
    .reg .b64  %rd<6>;
    ld.param.u64 %rd5, [flag];
    ld.param.u64 %rd1, [limit_ns];
    mov.u64      %rd2, %globaltimer;
MORE:
    ld.volatile.global.u32 %r1, [%rd5];
    setp.ne.u32  %p2, %r1, 0;
    @%p2 bra     DONE;
    mov.u64      %rd3, %globaltimer;
    sub.s64      %rd4, %rd3, %rd2;
    setp.lt.u64  %p1, %rd4, %rd1;
    @%p1 bra     MORE;
DONE:
    ret;
}

.visible .entry gcx_set_variable(.param .u32 value)
{
    .reg .b32  %r<2>;
    ld.param.u32 %r1, [value];
    st.global.u32 [gcx_variable], %r1;
    ret;
}

.visible .entry gcx_get_variable(.param .u64 to)
{
    .reg .b32  %r<2>;
    .reg .b64  %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.global.u32 %r1, [gcx_variable];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry gcx_trap()
{
    trap;
    ret;
}
)";

} // namespace conformance

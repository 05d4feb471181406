//! cudarc and gcx: a kernel that cudarc loaded, and a CUDA graph of it, run in two partitions. The graph
//! is captured once and runs on the SMs of the stream that it is launched in. The kernel counts the
//! blocks of each SM, so that the partitions can be checked.
//!
//!     cargo run --release
//!
//! cudarc's `CudaStream` can't wrap an existing stream, so that the launches use
//! `cudarc::driver::result`, which takes any. Memory, modules and functions are cudarc's safe ones.

use std::error::Error;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys, CudaContext, CudaFunction, CudaSlice, DevicePtr};
use cudarc::nvrtc::Ptx;
use gcx::{Device, Graph, Partition, Stream};

const VALUES: u32 = 1 << 20;
const BLOCK: u32 = 256;
const LAUNCHES_IN_GRAPH: u32 = 3;
const REPLAYS: u32 = 5;

/// Adds one to each value, and to the count of the SM that the block runs on.
const KERNEL: &str = "
.version 6.3
.target sm_70
.address_size 64

.visible .entry add_one(.param .u64 values, .param .u32 count, .param .u64 blocks_of_sm)
{
    .reg .pred %p<3>;
    .reg .b32  %r<8>;
    .reg .b64  %rd<9>;

    ld.param.u64 %rd1, [values];
    ld.param.u32 %r1, [count];
    ld.param.u64 %rd2, [blocks_of_sm];

    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd5, %rd3, %rd4;
    ld.global.u32 %r6, [%rd5];
    add.u32 %r6, %r6, 1;
    st.global.u32 [%rd5], %r6;

    setp.ne.u32 %p2, %r4, 0;
    @%p2 bra DONE;
    mov.u32 %r7, %smid;
    cvta.to.global.u64 %rd6, %rd2;
    mul.wide.u32 %rd7, %r7, 4;
    add.s64 %rd8, %rd6, %rd7;
    red.global.add.u32 [%rd8], 1;
DONE:
    ret;
}
";

/// What the kernel works on.
struct Work {
    kernel: CudaFunction,
    values: CudaSlice<u32>,
    blocks_of_sm: CudaSlice<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::new(0)?;
    println!("{}", device.name());
    let parts = device.partition([108, 24])?;
    println!("{}", gcx::verify(&parts)?);

    let cuda = CudaContext::new(0)?; // the device's primary context
    let mut work = Work {
        kernel: cuda.load_module(Ptx::from_src(KERNEL))?.load_function("add_one")?,
        values: cuda.default_stream().alloc_zeros(VALUES as usize)?,
        blocks_of_sm: cuda.default_stream().alloc_zeros(gcx::sys::GCX_MAX_SMS as usize)?,
    };
    cuda.synchronize()?; // before other streams use the memory
    let graph = captured(&work, parts[0].stream())?;
    for part in &parts {
        work.clear(&cuda)?;
        launch(&work, part.stream())?;
        part.synchronize()?;
        check(&cuda, part, &work, "a kernel", 1)?;

        work.clear(&cuda)?;
        for _ in 0..REPLAYS {
            graph.launch([part])?; // on the SMs of this part, wherever it was captured
        }
        part.synchronize()?;
        check(&cuda, part, &work, "a graph", LAUNCHES_IN_GRAPH * REPLAYS)?;
    }
    Ok(())
}

impl Work {
    /// Everything is 0, before other streams use it.
    fn clear(&mut self, cuda: &Arc<CudaContext>) -> Result<(), Box<dyn Error>> {
        cuda.default_stream().memset_zeros(&mut self.values)?;
        cuda.default_stream().memset_zeros(&mut self.blocks_of_sm)?;
        cuda.synchronize()?;
        Ok(())
    }
}

/// The stream as cudarc's functions take it.
fn stream_of(stream: &Stream) -> gcx::Result<sys::CUstream> {
    Ok(stream.native()?.cast())
}

/// Launches cudarc's kernel in gcx's stream.
fn launch(work: &Work, stream: &Stream) -> Result<(), Box<dyn Error>> {
    let of_cudarc = work.values.stream();
    let (mut values, _until_launched) = work.values.device_ptr(of_cudarc);
    let (mut blocks, _until_launched_too) = work.blocks_of_sm.device_ptr(of_cudarc);
    let mut count = VALUES;
    let mut arguments: [*mut c_void; 3] = [
        std::ptr::addr_of_mut!(values).cast(),
        std::ptr::addr_of_mut!(count).cast(),
        std::ptr::addr_of_mut!(blocks).cast(),
    ];
    let grid = (VALUES.div_ceil(BLOCK), 1, 1);
    // SAFETY: the arguments are those of the kernel, and its memory outlives the stream's work,
    // which `main` waits for.
    unsafe {
        let kernel = work.kernel.cu_function();
        result::launch_kernel(kernel, grid, (BLOCK, 1, 1), 0, stream_of(stream)?, &mut arguments)?;
    }
    Ok(())
}

/// Captures some launches in gcx's stream as a CUDA graph.
fn captured(work: &Work, stream: &Stream) -> Result<Graph, Box<dyn Error>> {
    let native = stream_of(stream)?;
    // SAFETY: the stream is alive; the native graph is destroyed once, and gcx has a copy. What the
    // graph works on lives as long as `main`, which waits for each part that it is launched in.
    unsafe {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        result::stream::begin_capture(native, mode)?;
        let launched = (0..LAUNCHES_IN_GRAPH).try_for_each(|_| launch(work, stream));
        let native = result::stream::end_capture(native)?;
        let graph = Graph::from_native(native.cast());
        result::graph::destroy(native)?;
        launched?;
        Ok(graph?)
    }
}

/// Checks that every value was incremented by each run of the kernel, only on the partition's SMs.
fn check(
    cuda: &Arc<CudaContext>,
    part: &Partition,
    work: &Work,
    what: &str,
    runs: u32,
) -> Result<(), Box<dyn Error>> {
    if gcx::driver_info()?.simulated {
        println!("{what} of cudarc in {} SMs: SIMULATED, it computed nothing", part.sm_count());
        return Ok(());
    }
    let values = cuda.default_stream().clone_dtoh(&work.values)?;
    if let Some(wrong) = values.iter().find(|&&value| value != runs) {
        return Err(format!("{what}: a value is {wrong} where {runs} was right").into());
    }
    let blocks = cuda.default_stream().clone_dtoh(&work.blocks_of_sm)?;
    let seen: Vec<u32> = (0u32..).zip(&blocks).filter(|(_, &n)| n > 0).map(|(sm, _)| sm).collect();
    let own = part.stream().sm_ids()?;
    if let Some(strange) = seen.iter().find(|sm| !own.contains(sm)) {
        return Err(format!("{what}: it ran on SM {strange}, which isn't the partition's").into());
    }
    let (ran, has) = (seen.len(), own.len());
    println!(
        "{what} of cudarc in {has} SMs: {VALUES} values right, ran on {ran} of them, no other"
    );
    Ok(())
}

//! Links `units` and `startup` without the standard library.
//!
//! The standard library has a panic handler and a global allocator of its own. If either crate, or
//! a dependency of theirs, used it, the ones below would be defined twice and the build would fail.

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use headstart_startup::catalogue;

/// The name's length of the scheme at `index`, or zero: something that needs the whole crate.
#[unsafe(no_mangle)]
pub extern "C" fn headstart_scheme_name_length(index: usize) -> usize {
    catalogue::all().get(index).map_or(0, |entry| entry.name.len())
}

struct NoMemory;

// SAFETY: a null pointer is how an allocator refuses; nothing is ever allocated or freed.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

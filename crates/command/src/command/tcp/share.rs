//! `headstart tcp history share`: one history for the hosts of a fleet, for the kernel's TCP.
//!
//! ```text
//! SYN arrives     -> the record of the client is asked for; a newer one goes to the kernel
//! record measured -> it is written behind, within 200 ms
//! record misled   -> no host starts from it any more
//! ```
//!
//! The kernel waits for none of this: a connection starts from what its history has by then. A
//! record that another host starts from at the moment is left out.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use headstart_ebpf::history::Clocks;
use headstart_ebpf::layout::PeerEvent;
use headstart_ebpf::load::Maps;
use headstart_host::unix_now;
use headstart_startup::history::Record;
use headstart_store::Store as _;
use headstart_store::fleet::{Address, Fleet, Options};

use crate::command::serve::{EndSignals, tell_of_fleet};

/// Time for writing what is left at the end.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Runs `headstart tcp history share`.
///
/// # Errors
/// If the attached object has no history, or the system gives no thread.
pub fn share(maps: Maps, server: &Address) -> Result<()> {
    // An error now rather than at the first event.
    maps.records()?;
    let maps = Arc::new(maps);
    let table = Arc::clone(&maps);
    let fleet = Fleet::open_with(server.clone(), Options::default(), move |peer, record| {
        take(&table, peer, record);
    })
    .context("cannot start a thread")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut end = EndSignals::new();
        tokio::spawn(tell_of_fleet(fleet.clone()));
        let stops = Arc::new(AtomicBool::new(false));
        let (stopping, exchange) = (Arc::clone(&stops), fleet.clone());
        let mut following = tokio::task::spawn_blocking(move || {
            let each = |peer, event| pass_on(&exchange, &maps, peer, event);
            maps.follow_peers(each, || !stopping.load(Ordering::Relaxed))
        });
        eprintln!("headstart: the history is shared with {server}; Ctrl-C ends it");
        tokio::select! {
            followed = &mut following => followed??,
            () = end.wait() => {
                stops.store(true, Ordering::Relaxed);
                following.await??;
            }
        }
        anyhow::Ok(())
    })?;
    let counters = fleet.counters();
    let unwritten = fleet.flush(LAST_WRITES).err();
    eprintln!(
        "headstart: {} records found of {} asked for, {} written",
        counters.found,
        counters.asked,
        fleet.counters().written
    );
    if let Some(reason) = unwritten {
        eprintln!("headstart: {} records were not written: {reason}", fleet.counters().waiting);
    }
    Ok(())
}

/// Passes an event of the kernel to the fleet.
fn pass_on(fleet: &Fleet, maps: &Maps, peer: IpAddr, event: PeerEvent) {
    match event {
        PeerEvent::Connects => fleet.prefetch(peer),
        // It may have been evicted meanwhile.
        PeerEvent::Saved => {
            if let Ok(Some(record)) = maps.record(peer) {
                fleet.put(peer, Clocks::now().to_store(&record));
            }
        }
        PeerEvent::Dropped => fleet.drop_record(peer, unix_now()),
    }
}

/// Takes an answer of the fleet's server into the object's history, unless that has a newer one.
fn take(maps: &Maps, peer: IpAddr, record: &Record) {
    let clocks = Clocks::now();
    let taken = if record.btl_bw.is_zero() {
        // It misled a start on another host.
        let here = maps.record(peer).ok().flatten();
        let is_older = here.is_some_and(|here| clocks.to_store(&here).saved_at < record.saved_at);
        if is_older { maps.remove(peer) } else { Ok(()) }
    } else {
        maps.restore(peer, record, clocks).map(drop)
    };
    if let Err(error) = taken {
        eprintln!("headstart: {peer}: {error}");
    }
}

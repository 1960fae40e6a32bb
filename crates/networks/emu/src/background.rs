//! File output on another thread, for a relay that must not wait for a disk.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Most blocks queued for the disk.
const WAITING: usize = 256;

/// A thread that writes blocks in order. If the disk is too slow, blocks are dropped.
///
/// Empty blocks are returned for reuse. The relay must not allocate or free memory of the other
/// thread: the allocator's lock, held by a thread of ordinary priority, delayed departures by
/// milliseconds on a loaded host.
#[derive(Debug)]
pub(crate) struct Background<T> {
    sender: Option<SyncSender<Vec<T>>>,
    empty: Receiver<Vec<T>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl<T: Send + Clone + 'static> Background<T> {
    /// Blocks of `length`, each passed to `write`, which gets `None` at the end.
    pub(crate) fn start(
        name: &str,
        length: usize,
        mut write: impl FnMut(Option<&[T]>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<Vec<T>>(WAITING);
        let (give_back, empty) = sync_channel(WAITING + 2);
        for _ in 0..WAITING / 8 {
            let _ = give_back.try_send(Vec::with_capacity(length));
        }
        let writer = std::thread::Builder::new().name(name.into()).spawn(move || {
            for mut block in receiver {
                write(Some(&block))?;
                block.clear();
                // With too many spare blocks, this one is not needed.
                let _ = give_back.try_send(block);
            }
            write(None)
        })?;
        Ok(Self { sender: Some(sender), empty, writer: Some(writer) })
    }

    pub(crate) fn empty(&self) -> Vec<T> {
        self.empty.try_recv().unwrap_or_default()
    }

    /// Queues a block and replaces it by an empty one; a full queue drops it and returns false.
    pub(crate) fn submit(&self, block: &mut Vec<T>) -> bool {
        let Some(sender) = &self.sender else { return false };
        let full = core::mem::replace(block, self.empty());
        match sender.try_send(full) {
            Ok(()) => true,
            Err(TrySendError::Full(mut full) | TrySendError::Disconnected(mut full)) => {
                full.clear();
                *block = full;
                false
            }
        }
    }

    /// Queues the last block without a time limit, and waits for the disk.
    pub(crate) fn finish(&mut self, last: Vec<T>) -> io::Result<()> {
        if let Some(sender) = self.sender.take() {
            // An error means that the thread has failed; it is reported below.
            let _ = sender.send(last);
        }
        match self.writer.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the thread that writes a file has failed")),
        }
    }
}

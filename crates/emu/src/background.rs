//! Writing files beside a relay that must not wait for a disk.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Blocks that may wait for the disk.
const WAITING: usize = 256;

/// A thread that writes blocks in the order in which they are handed over. If it cannot keep up,
/// blocks are left out.
///
/// Empty blocks come back to be filled again. The relay must not free or allocate what the other
/// thread does: the allocator's lock in the hands of a thread of ordinary priority made departures
/// milliseconds late on a busy machine.
#[derive(Debug)]
pub(crate) struct Background<T> {
    sender: Option<SyncSender<Vec<T>>>,
    empty: Receiver<Vec<T>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl<T: Send + Clone + 'static> Background<T> {
    /// Blocks of `length`, each written by `write`, which is called with `None` at the end.
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
                // If there are too many of them, this one is not needed.
                let _ = give_back.try_send(block);
            }
            write(None)
        })?;
        Ok(Self { sender: Some(sender), empty, writer: Some(writer) })
    }

    /// An empty block.
    pub(crate) fn empty(&self) -> Vec<T> {
        self.empty.try_recv().unwrap_or_default()
    }

    /// Hands a block over and puts an empty one in its place; false if too many wait, and this one
    /// is left out.
    pub(crate) fn hand_over(&self, block: &mut Vec<T>) -> bool {
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

    /// Hands the last block over, however long that takes, and waits for the disk.
    pub(crate) fn finish(&mut self, last: Vec<T>) -> io::Result<()> {
        if let Some(sender) = self.sender.take() {
            // If it fails the thread has failed, and says why.
            let _ = sender.send(last);
        }
        match self.writer.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the thread that writes a file has failed")),
        }
    }
}

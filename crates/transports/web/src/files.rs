//! Files of a folder that are served without a thread that waits, as long as the kernel has them
//! cached.
//!
//! `tower-http` with tokio's files visits a thread that may block for each call: four for a small
//! page, each of which wakes two threads. Here [`Files::Cached`] finds, opens and reads what is in
//! the kernel's caches and fails with [`io::ErrorKind::WouldBlock`] otherwise. Then [`Files::Any`]
//! does all of it in one visit. Later reads try the cache first, and tokio has the rest.

use std::future::{Ready, ready};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File};

/// Opens regular files. Others are not found: to open a pipe may block for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Without blocking, as far as the kernel has a file's path cached (Linux).
    Cached,
    /// On a thread that may block.
    Any,
}

impl Files {
    fn look(self, path: &Path) -> io::Result<std::fs::Metadata> {
        let found = match self {
            Self::Cached => cached::open(path, cached::PATH)?.metadata()?,
            Self::Any => std::fs::metadata(path)?,
        };
        if found.is_file() || found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn opened(self, path: &Path) -> io::Result<OpenFile> {
        let length = self.look(path)?.len();
        let file = match self {
            Self::Cached => cached::open(path, cached::READ)?,
            Self::Any => std::fs::File::open(path)?,
        };
        Ok(OpenFile { file: Some(file), length, may_block: self == Self::Any, slow: None })
    }
}

impl Backend for Files {
    type File = OpenFile;
    type Metadata = std::fs::Metadata;
    type OpenFuture = Ready<io::Result<OpenFile>>;
    type MetadataFuture = Ready<io::Result<std::fs::Metadata>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        ready(self.opened(&path))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        ready(self.look(&path))
    }
}

/// A file that is read from the kernel's cache until a read would block.
#[derive(Debug)]
pub struct OpenFile {
    /// Until a read would block.
    file: Option<std::fs::File>,
    /// In bytes, when it was opened.
    length: u64,
    /// The first read may block, as everything before it did.
    may_block: bool,
    /// Since a read would have blocked.
    slow: Option<tokio::fs::File>,
}

impl OpenFile {
    fn unread(&self) -> io::Result<&std::fs::File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("found a file that is being read"))
    }
}

impl File for OpenFile {
    type Metadata = std::fs::Metadata;
    type MetadataFuture<'a> = Ready<io::Result<std::fs::Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(self.unread().and_then(std::fs::File::metadata))
    }
}

impl AsyncRead for OpenFile {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(mut file) = this.file.take() {
            // Of a short file less than the buffer, which has to be cleared first.
            let most = buffer.remaining().min(usize::try_from(this.length).unwrap_or(usize::MAX).max(1));
            let place = buffer.initialize_unfilled_to(most);
            let read = if std::mem::take(&mut this.may_block) {
                file.read(place).map(Some)?
            } else {
                cached::read(&file, place)
            };
            if let Some(read) = read {
                buffer.advance(read);
                this.file = Some(file);
                return Poll::Ready(Ok(()));
            }
            this.slow = Some(tokio::fs::File::from_std(file));
        }
        let Some(file) = &mut this.slow else { return Poll::Ready(Ok(())) };
        Pin::new(file).poll_read(context, buffer)
    }
}

impl AsyncSeek for OpenFile {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.unread()?.seek(position).map(|_| ())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(self.unread()?.stream_position())
    }
}

/// The kernel's caches of paths and contents, without waiting for a disk (openat2(2), preadv2(2)).
#[cfg(target_os = "linux")]
mod cached {
    use std::io::{self, IoSliceMut};
    use std::path::Path;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::{Errno, ReadWriteFlags};

    /// Only finds a file.
    pub const PATH: OFlags = OFlags::PATH;
    /// A pipe that has taken a file's place is not waited for.
    pub const READ: OFlags = OFlags::NONBLOCK;

    pub fn open(path: &Path, flags: OFlags) -> io::Result<std::fs::File> {
        let opened =
            rustix::fs::openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED);
        match opened {
            Ok(file) => Ok(file.into()),
            Err(Errno::NOENT) => Err(io::ErrorKind::NotFound.into()),
            // The visit that may block has the answer.
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Reads at the file's position; `None` if that would block or cannot be told.
    pub fn read(file: &std::fs::File, buffer: &mut [u8]) -> Option<usize> {
        rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], u64::MAX, ReadWriteFlags::NOWAIT).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod cached {
    use std::io;
    use std::path::Path;

    pub const PATH: () = ();
    pub const READ: () = ();

    pub fn open(_: &Path, (): ()) -> io::Result<std::fs::File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub const fn read(_: &std::fs::File, _: &mut [u8]) -> Option<usize> {
        None
    }
}

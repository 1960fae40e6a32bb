//! Files of a folder, found, opened and read from its beginning in one visit to a thread that may
//! block.
//!
//! `tower-http` with tokio's files makes such a visit for each call: four for a small page, each of
//! which wakes two threads. Here the calls block, and [`Files`] belongs on a thread that may. Tokio
//! reads all chunks after the first.

use std::future::{Ready, ready};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File};

/// Opens regular files. Others are not found: to open a pipe may block for ever.
#[derive(Clone, Copy, Debug)]
pub struct Files;

impl Backend for Files {
    type File = OpenFile;
    type Metadata = std::fs::Metadata;
    type OpenFuture = Ready<io::Result<OpenFile>>;
    type MetadataFuture = Ready<io::Result<std::fs::Metadata>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let open = |_| Ok(OpenFile { opened: Some(std::fs::File::open(&path)?), begun: None });
        ready(look(&path).and_then(open))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        ready(look(&path))
    }
}

fn look(path: &Path) -> io::Result<std::fs::Metadata> {
    let found = std::fs::metadata(path)?;
    if found.is_file() || found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// A file whose first read blocks, as everything before it does, and no later one.
#[derive(Debug)]
pub struct OpenFile {
    /// Until the first read.
    opened: Option<std::fs::File>,
    /// From then on.
    begun: Option<tokio::fs::File>,
}

impl OpenFile {
    fn opened(&self) -> io::Result<&std::fs::File> {
        self.opened.as_ref().ok_or_else(|| io::Error::other("found a file that is being read"))
    }
}

impl File for OpenFile {
    type Metadata = std::fs::Metadata;
    type MetadataFuture<'a> = Ready<io::Result<std::fs::Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(self.opened().and_then(std::fs::File::metadata))
    }
}

impl AsyncRead for OpenFile {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(mut file) = this.opened.take() else {
            let Some(file) = &mut this.begun else { return Poll::Ready(Ok(())) };
            return Pin::new(file).poll_read(context, buffer);
        };
        let read = file.read(buffer.initialize_unfilled())?;
        buffer.advance(read);
        this.begun = Some(tokio::fs::File::from_std(file));
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for OpenFile {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.opened()?.seek(position).map(|_| ())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(self.opened()?.stream_position())
    }
}

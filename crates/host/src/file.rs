//! Files that others wrote, of any length.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of a file of at most `most` bytes. Of a longer or endless one no more is read.
///
/// # Errors
/// The system's, with its words; [`io::ErrorKind::FileTooLarge`] if there is more.
pub fn read_at_most(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let text = format!("found more than {most} bytes, expected at most these");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As [`read_at_most`], and [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text_at_most(path: &Path, most: usize) -> io::Result<String> {
    String::from_utf8(read_at_most(path, most)?).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("line {line}: found bytes that are not UTF-8, expected text"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_never_beyond() {
        let path = std::env::temp_dir().join(format!("headstart-file-{}", std::process::id()));
        std::fs::write(&path, "one\ntwo\n").expect("a temporary file");
        assert_eq!(read_at_most(&path, 8).expect("as long as it may be"), b"one\ntwo\n");
        let error = read_at_most(&path, 7).expect_err("too long").to_string();
        assert_eq!(error, "found more than 7 bytes, expected at most these");
        std::fs::write(&path, b"one\n\xff\n").expect("a temporary file");
        let error = read_text_at_most(&path, 100).expect_err("no text").to_string();
        assert_eq!(error, "line 2: found bytes that are not UTF-8, expected text");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_file_is_refused() {
        let error = read_at_most(Path::new("/dev/zero"), 1000).expect_err("it has no end");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}

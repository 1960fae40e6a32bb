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

/// The bytes of a text without the mark that some programs put before it.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it begins with the mark of UTF-16.
pub fn without_mark(bytes: &[u8]) -> io::Result<&[u8]> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "found UTF-16, expected UTF-8: save it as UTF-8",
        ));
    }
    Ok(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))
}

/// Text of a file of at most `most` bytes.
///
/// # Errors
/// As [`read_at_most`], and [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text_at_most(path: &Path, most: usize) -> io::Result<String> {
    String::from_utf8(without_mark(&read_at_most(path, most)?)?.to_vec()).map_err(|error| {
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
        assert_eq!(without_mark(b"\xef\xbb\xbfone").expect("a mark"), b"one");
        assert_eq!(without_mark(b"one").expect("no mark"), b"one");
        for mark in [b"\xff\xfeo\0", b"\xfe\xff\0o"] {
            let refused = without_mark(mark).expect_err("UTF-16").to_string();
            assert!(refused.starts_with("found UTF-16, expected UTF-8"), "{refused}");
        }
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

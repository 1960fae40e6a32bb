//! A scheme's name with its parameters, as a value that can be copied.

use core::cmp::Ordering;
use core::fmt::{self, Write};
use core::hash::{Hash, Hasher};
use core::ops::Deref;

/// Bytes of the longest name.
const MAX_LENGTH: usize = 255;

/// The name of a scheme as it is printed: `iw10`, `halfback(additional=25%)`; at most 255 bytes.
#[derive(Clone, Copy)]
pub struct Name {
    length: u8,
    bytes: [u8; MAX_LENGTH],
}

impl Name {
    /// A name; `None` if it is too long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut name = Self::default();
        name.write_str(text).ok().map(|()| name)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only whole texts are written.
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl Default for Name {
    fn default() -> Self {
        Self { length: 0, bytes: [0; MAX_LENGTH] }
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let begin = usize::from(self.length);
        let room = self.bytes.get_mut(begin..begin + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = u8::try_from(begin + text.len()).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// Maps by name are searched with any text.
impl core::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_its_text_or_is_refused() {
        let longest = "é".repeat(127);
        for text in ["", "iw10", "halfback(additional=25%)", longest.as_str()] {
            let name = Name::new(text).expect("short enough");
            assert_eq!((name.as_str(), name), (text, name));
        }
        assert!(Name::new(&"x".repeat(256)).is_none());
        let mut name = Name::new("abc").expect("short");
        assert!(name.write_str(&"x".repeat(253)).is_err());
        assert_eq!(name, "abc", "what did not fit was not written in part");
    }
}

//! The text of a scheme with parameters: `halfback(additional=25%)`, and errors in it.
//!
//! Text is untrusted: of bounded length; nothing panics; an error quotes a short, printable part.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{Field, Parameters};

/// Limit on the text in bytes, above the longest scheme.
pub(crate) const MAX_TEXT: usize = 512;
/// Characters of a text that an error quotes.
const QUOTED: usize = 48;
/// Characters of a name that is compared with others.
const COMPARED: usize = 32;
/// Edit distance up to which a name counts as misspelt.
const WRONG: usize = 2;

/// The reason why a text is no scheme: the part concerned, its text, and the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    place: String,
    found: String,
    expected: String,
    meant: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "found {}, expected {}", self.found, self.expected)?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean `{meant}`?"))
    }
}

impl core::error::Error for Error {}

impl Error {
    /// A text that is not `name` or `name(parameter=value,..)`.
    pub(crate) fn shape(text: &str, expected: &str) -> Self {
        Self { place: String::new(), found: shown(text), expected: expected.into(), meant: None }
    }

    pub(crate) fn unknown_scheme<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        Self {
            place: String::new(),
            found: shown(name),
            expected: list("one of ", known.clone()),
            meant: nearest(name, known).map(Into::into),
        }
    }

    pub(crate) fn unknown_parameter<P: Parameters>(scheme: &str, name: &str) -> Self {
        let names: Vec<String> = P::FIELDS.iter().map(|field| field.name.replace('_', "-")).collect();
        let known = names.iter().map(String::as_str);
        let expected = match names.len() {
            0 => "none: it has no parameters".to_string(),
            _ => list("one of ", known.clone()),
        };
        let meant = nearest(name, known).map(Into::into);
        Self { place: scheme.into(), found: alloc::format!("the parameter {}", shown(name)), expected, meant }
    }

    pub(crate) fn bad_value<P>(scheme: &str, field: &Field<P>, value: &str) -> Self {
        let mut expected = String::new();
        // Writing to a string does not fail.
        let _ = (field.expected)(&mut expected);
        let place = alloc::format!("{scheme}: {}", field.name.replace('_', "-"));
        Self { place, found: shown(value), expected, meant: None }
    }
}

fn list<'a>(before: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from(before);
    for (at, name) in names.enumerate() {
        text.push_str(if at == 0 { "" } else { ", " });
        text.push_str(name);
    }
    text
}

/// The beginning of a text, in quotes and fit to be printed.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::from("`");
    let mut characters = text.trim().chars();
    for character in characters.by_ref().take(QUOTED) {
        // Writing to a string does not fail.
        let _ = write!(shown, "{}", character.escape_debug());
    }
    shown.push_str(if characters.next().is_some() { "…`" } else { "`" });
    shown
}

/// A name and its settings: `halfback` and `[("additional", "25%")]`.
pub(crate) fn split(text: &str) -> Result<(&str, &str), Error> {
    const SHAPE: &str = "a scheme such as `halfback` or `halfback(additional=25%)`";
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_TEXT {
        return Err(Error::shape(text, SHAPE));
    }
    let (name, rest) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')),
        None => (text, (!text.contains([')', '=', ','])).then_some("")),
    };
    match rest {
        Some(inner) if !inner.contains(['(', ')']) && !name.trim().is_empty() => Ok((name.trim(), inner)),
        _ => Err(Error::shape(text, SHAPE)),
    }
}

/// A parameter's name and its value.
pub(crate) type Setting<'a> = (&'a str, &'a str);

/// The settings between the parentheses, each once.
pub(crate) fn settings<'a>(scheme: &str, inner: &'a str) -> Result<Vec<Setting<'a>>, Error> {
    let mut settings: Vec<Setting<'_>> = Vec::new();
    if inner.trim().is_empty() {
        return Ok(settings);
    }
    let error = |found: String, expected: &str| Error {
        place: scheme.into(),
        found,
        expected: expected.into(),
        meant: None,
    };
    for setting in inner.split(',') {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(error(shown(setting), "`parameter=value`"));
        };
        let (name, value) = (name.trim(), value.trim());
        if settings.iter().any(|(known, _)| is_same_name(known, name)) {
            return Err(error(alloc::format!("{} twice", shown(name)), "each parameter once"));
        }
        settings.push((name, value));
    }
    Ok(settings)
}

/// The parts of a list of schemes: commas within parentheses do not separate.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
}

/// Letters and digits alone, in lower case: how names are compared.
fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// `WiseStart`, `wise-start` and `Wise start` are one name.
#[must_use]
pub fn is_same_name(one: &str, other: &str) -> bool {
    one == other || (letters(one).eq(letters(other)) && letters(one).next().is_some())
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.map(|known| (distance(name, known), known));
    let (wrong, nearest) = distances.min_by_key(|(wrong, _)| *wrong)?;
    // A short name with two wrong letters is too different.
    (wrong <= WRONG && wrong * 2 < letters(nearest).count()).then_some(nearest)
}

/// Levenshtein distance; an overestimate for very long names.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) =
        (letters(one).take(COMPARED + 1).collect(), letters(other).take(COMPARED + 1).collect());
    if one.len() > COMPARED || other.len() > COMPARED {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, left) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, right) in other.iter().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[to + 1];
            row[to + 1] = changed.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_parentheses_do_not_separate() {
        let parts: Vec<&str> = split_list("iw10, halfback(additional=25%,burst=10) ,pcp").collect();
        assert_eq!(parts, ["iw10", "halfback(additional=25%,burst=10)", "pcp"]);
        assert_eq!(split_list("a),b").collect::<Vec<_>>(), ["a)", "b"], "an error is not made worse");
        assert_eq!(split_list("a(b,c").collect::<Vec<_>>(), ["a(b,c"]);
    }

    #[test]
    fn names_are_compared_without_case_and_hyphens() {
        for (one, other, expected) in [
            ("WiseStart", "wise-start", true),
            ("IW10", "iw10", true),
            ("jump start", "Jump-Start", true),
            ("iw1", "iw10", false),
            ("", "", true),
            ("-", "--", false),
            ("", "iw10", false),
        ] {
            assert_eq!(is_same_name(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_misspelt_name_is_distinguished_from_another_name() {
        let known = ["halfback", "bbr", "iw10"];
        for (name, expected) in [
            ("halfbak", Some("halfback")),
            ("hallfback", Some("halfback")),
            ("hulfbock", Some("halfback")),
            ("hlfbck", Some("halfback")),
            ("bbt", Some("bbr")),
            ("iw16", Some("iw10")),
            ("ab", None),
            ("tahoe", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known.into_iter()), None);
    }

    #[test]
    fn quoted_text_is_short_and_printable() {
        assert_eq!(shown(" a\u{7}b\n "), "`a\\u{7}b`");
        assert!(shown(&"y".repeat(500)).chars().count() < QUOTED + 5);
    }
}

//! The used JSON of a HAR file: every key may be missing, and each error names its key.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::MAX_ENTRIES;

#[derive(Deserialize)]
pub(super) struct Har {
    pub(super) log: Option<Map<Log>>,
}

#[derive(Deserialize)]
pub(super) struct Log {
    pub(super) pages: Option<List<Map<PageEntry>>>,
    pub(super) entries: Option<List<Map<Entry>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PageEntry {
    pub(super) id: Text,
    pub(super) title: Text,
    #[serde(rename = "pageTimings")]
    pub(super) timings: Option<Map<PageTimings>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PageTimings {
    pub(super) on_content_load: Millis,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Stack {
    pub(super) call_frames: Option<List<Map<Frame>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Frame {
    pub(super) url: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) pageref: Text,
    pub(super) started_date_time: Option<String>,
    pub(super) request: Option<Map<Request>>,
    pub(super) response: Option<Map<Response>>,
    pub(super) time: Millis,
    #[serde(rename = "_initiator")]
    pub(super) initiator: Initiator,
    #[serde(rename = "_fromCache")]
    pub(super) from_cache: Flag,
    #[serde(rename = "_resourceType")]
    pub(super) resource_type: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) url: Option<String>,
    pub(super) method: Text,
    pub(super) http_version: Text,
}

/// A name and a value, as of HTTP.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    pub(super) name: Text,
    pub(super) value: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Response {
    pub(super) status: Count,
    pub(super) http_version: Text,
    pub(super) headers: Option<List<Map<Header>>>,
    #[serde(rename = "redirectURL")]
    pub(super) redirect_url: Text,
    pub(super) headers_size: Count,
    pub(super) body_size: Count,
    pub(super) content: Option<Map<Content>>,
    #[serde(rename = "_transferSize")]
    pub(super) transfer_size: Count,
    #[serde(rename = "_error")]
    pub(super) error: Flag,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Content {
    pub(super) mime_type: Text,
    pub(super) size: Count,
    pub(super) compression: Count,
}

impl Response {
    /// The value of a header, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.headers.iter().flat_map(|list| &list.0);
        let is_it = |header: &&Map<Header>| {
            header.0.name.0.as_ref().is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        headers.filter(is_it).find_map(|header| header.0.value.0.as_deref())
    }
}

/// A JSON object. A derived `Deserialize` would also accept a list, field by field.
pub(super) struct Map<T>(pub(super) T);

/// A JSON list of bounded length.
pub(super) struct List<T>(pub(super) Vec<T>);

/// A number that is not negative, also as text; `None` if it is, or is `null`, empty or absent.
#[derive(Clone, Copy, Default)]
pub(super) struct Count(pub(super) Option<u64>);

/// A string; `None` for anything else, since nothing depends on it.
#[derive(Clone, Default)]
pub(super) struct Text(pub(super) Option<String>);

/// True for a value other than `null`, `false`, zero or empty.
#[derive(Clone, Copy, Default)]
pub(super) struct Flag(pub(super) bool);

/// Milliseconds; `None` for anything but a number that is not negative.
#[derive(Clone, Copy, Default)]
pub(super) struct Millis(pub(super) Option<f64>);

/// The address of the object that caused a request: of Chrome its parser's or its script's, of
/// WebPageTest a string.
#[derive(Default)]
pub(super) struct Initiator(pub(super) Option<String>);

/// Reads a `T` through `impl Visitor for ValueVisitor<T>`.
struct ValueVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueVisitor::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ValueVisitor<Map<T>> {
    type Value = Map<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Map)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ValueVisitor::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ValueVisitor<List<T>> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = list.next_element()? {
            if members.len() == MAX_ENTRIES {
                return Err(A::Error::custom(format!(
                    "more than {MAX_ENTRIES} members, expected at most that many"
                )));
            }
            members.push(member);
        }
        Ok(List(members))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor::<Self>(PhantomData))
    }
}

impl Visitor<'_> for ValueVisitor<Count> {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Count, E> {
        Ok(Count(Some(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(value).ok()))
    }

    /// Numbers with a point or an exponent, and those beyond 64 bits.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Count, E> {
        if value < 0.0 {
            Ok(Count(None))
        } else if value.fract() == 0.0 {
            // The conversion saturates; the limit on sizes then refuses it.
            Ok(Count(Some(value as u64)))
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Count, E> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Count(None));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => self.visit_f64(number),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }
}

/// Visits any JSON value, and reduces it by its string, its number, its flag or its object.
macro_rules! visit_anything {
    ($value:ident, $from_string:expr, $from_number:expr, $from_flag:expr, $from_map:expr) => {
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ValueVisitor::<Self>(PhantomData))
            }
        }

        impl<'de> Visitor<'de> for ValueVisitor<$value> {
            type Value = $value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_str<E>(self, text: &str) -> Result<$value, E> {
                Ok($from_string(text))
            }

            fn visit_bool<E>(self, value: bool) -> Result<$value, E> {
                Ok($from_flag(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<$value, E> {
                Ok($from_number(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<$value, E> {
                Ok($from_number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<$value, E> {
                Ok($from_number(value))
            }

            fn visit_unit<E>(self) -> Result<$value, E> {
                Ok($from_flag(false))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<$value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok($from_flag(true))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$value, A::Error> {
                $from_map(map)
            }
        }
    };
}

fn passed_over<'de, A: MapAccess<'de>, T>(mut map: A, value: T) -> Result<T, A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(value)
}

fn initiator<'de, A: MapAccess<'de>>(mut map: A) -> Result<Initiator, A::Error> {
    let (mut found, mut frame) = (None, None);
    while let Some(Text(key)) = map.next_key()? {
        match key.as_deref() {
            Some("url") => found = map.next_value::<Text>()?.0,
            Some("stack") => {
                let frames = map.next_value::<Option<Map<Stack>>>()?.and_then(|stack| stack.0.call_frames);
                frame = frames.into_iter().flat_map(|list| list.0).find_map(|frame| frame.0.url.0);
            }
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
    }
    Ok(Initiator(found.or(frame)))
}

visit_anything!(Text, |text: &str| Text(Some(text.to_owned())), |_| Text(None), |_| Text(None), |map| {
    passed_over(map, Text(None))
});
visit_anything!(Flag, |text: &str| Flag(!text.is_empty()), |number: f64| Flag(number != 0.0), Flag, |map| {
    passed_over(map, Flag(true))
});
visit_anything!(
    Millis,
    |_: &str| Millis(None),
    |number: f64| Millis(Some(number).filter(|number| *number >= 0.0)),
    |_| Millis(None),
    |map| passed_over(map, Millis(None))
);
visit_anything!(
    Initiator,
    |text: &str| Initiator(Some(text.to_owned())),
    |_| Initiator(None),
    |_| Initiator(None),
    initiator
);

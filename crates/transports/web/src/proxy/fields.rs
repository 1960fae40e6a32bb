//! Header fields that a proxy removes, joins and writes.

use std::net::IpAddr;

use http::header::{
    AGE, ALT_SVC, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, DATE, EXPECT, EXPIRES, FORWARDED, HOST, LOCATION, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, RETRY_AFTER, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, VIA,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::server::EARLY_DATA;

/// Removes the fields of one connection (RFC 9110 §7.6.1), and those that `Connection` names.
pub(super) fn remove_fields_of_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // It is the message's length, whatever a client wants.
        .filter(|name| *name != CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

/// Removes fields from a request's trailers that would say something else than its head did about
/// its origin, its length or its rights. Some servers make one set of both (RFC 9110 §6.5.1).
pub(super) fn remove_fields_of_head(trailers: &mut HeaderMap) {
    remove_fields_of_connection(trailers);
    remove_claims(trailers, false);
    for name in [AUTHORIZATION, CONTENT_LENGTH, COOKIE, EARLY_DATA, EXPECT, HOST, VIA] {
        trailers.remove(name);
    }
}

/// Removes fields from an answer's trailers that are for its head alone (RFC 9110 §6.5.1): those of
/// framing, routing, authentication, caching and content.
pub(super) fn remove_fields_of_answer(trailers: &mut HeaderMap) {
    remove_fields_of_connection(trailers);
    for name in [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, TRAILER] {
        trailers.remove(name);
    }
    for name in [AGE, CACHE_CONTROL, DATE, EXPIRES, RETRY_AFTER, VARY] {
        trailers.remove(name);
    }
    for name in [ALT_SVC, HOST, LOCATION, SET_COOKIE, VIA, WWW_AUTHENTICATE] {
        trailers.remove(name);
    }
}

/// Names of fields in which proxies of other makers say what a client's address or target was.
const CLAIMS: [&str; 13] = [
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "forwarded-for",
    "proxy",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-url",
    "x-originating-ip",
    "x-real-ip",
    "x-rewrite-url",
];

/// Removes what a client says about its origin, unless it is a proxy that is trusted.
fn remove_claims(headers: &mut HeaderMap, is_trusted: bool) {
    // Many servers cannot tell `X_Forwarded_For` from `X-Forwarded-For`: both become variables.
    let is_claim = |name: &str| name.starts_with("x-forwarded-") || CLAIMS.contains(&name);
    let wrong = |name: &str| name.contains('_') || name == "proxy" || (!is_trusted && is_claim(name));
    let names: Vec<HeaderName> = headers.keys().filter(|name| wrong(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Writes `Forwarded` (RFC 7239) and `X-Forwarded-*`. Those of a client are believed only if it is
/// a proxy that is trusted.
pub(super) fn forwarded(headers: &mut HeaderMap, peer: IpAddr, host: Option<&str>, is_trusted: bool) {
    remove_claims(headers, is_trusted);
    let mut element = match peer {
        IpAddr::V4(peer) => format!("for={peer}"),
        IpAddr::V6(peer) => format!("for=\"[{peer}]\""),
    };
    if let Some(host) = host {
        element.push_str(&format!(";host=\"{host}\""));
    }
    element.push_str(";proto=https");
    join(headers, FORWARDED, b", ", Some(&element));
    join(headers, HeaderName::from_static("x-forwarded-for"), b", ", Some(&peer.to_string()));
    for (name, value) in [("x-forwarded-proto", Some("https")), ("x-forwarded-host", host)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.entry(name).or_insert(value);
        }
    }
}

/// Makes one field of all of that name, and of another element.
pub(super) fn join(headers: &mut HeaderMap, name: HeaderName, comma: &[u8], element: Option<&str>) {
    let before = headers.get_all(&name).iter().map(HeaderValue::as_bytes);
    let all: Vec<&[u8]> = before.chain(element.map(str::as_bytes)).collect();
    if let Ok(value) = HeaderValue::from_bytes(&all.join(comma)) {
        headers.insert(name, value);
    }
}

/// A length, which has digits alone (RFC 9110 §8.6).
pub(super) fn number(value: &HeaderValue) -> Option<u64> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

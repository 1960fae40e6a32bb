//! A client's choice of scheme: a name in the ALPN list of its ClientHello.
//!
//! That list is the only part that a server can read before a connection exists and that a foreign
//! server must ignore: it selects `h3` and goes on. A server that allows the choice confirms it
//! with the header [`HEADER`]; without the header a comparison would be void.

/// Prefix of the scheme's name in the ALPN list.
const PREFIX: &str = "headstart/";

/// Response header with the connection's scheme, sent only by a server that allows the choice.
pub const HEADER: &str = "headstart-scheme";

/// The protocol of HTTP/3 (RFC 9114 §3.1).
pub const HTTP3: &[u8] = b"h3";

/// Length limit of a scheme's name, in bytes: the list is untrusted input.
const MAX_LENGTH: usize = 200;

/// The ALPN list of a client that requests `scheme`.
#[must_use]
pub fn offer(scheme: Option<&str>) -> Vec<Vec<u8>> {
    let requested = scheme.map(|name| format!("{PREFIX}{name}").into_bytes());
    [HTTP3.to_vec()].into_iter().chain(requested).collect()
}

/// The scheme that an ALPN list requests.
#[must_use]
pub fn requested_scheme<'a>(protocols: impl IntoIterator<Item = &'a [u8]>) -> Option<&'a str> {
    protocols
        .into_iter()
        .filter_map(|protocol| std::str::from_utf8(protocol).ok()?.strip_prefix(PREFIX))
        .find(|name| !name.is_empty() && name.len() <= MAX_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(protocols: &[&[u8]]) -> Option<String> {
        requested_scheme(protocols.iter().copied()).map(str::to_owned)
    }

    #[test]
    fn a_requested_scheme_is_parsed() {
        let offered = offer(Some("wise-start"));
        assert_eq!(requested_scheme(offered.iter().map(Vec::as_slice)), Some("wise-start"));
        assert_eq!(offered[0], HTTP3);
    }

    #[test]
    fn an_absent_or_malformed_request_is_ignored() {
        let long = format!("headstart/{}", "x".repeat(MAX_LENGTH + 1));
        for protocols in [
            &[b"h3".as_slice()][..],
            &[],
            &[b"headstart/"],
            &[b"headstart/\xff\xfe"],
            &[b"Headstart/iw10"],
            &[long.as_bytes()],
        ] {
            assert_eq!(read(protocols), None, "{protocols:?}");
        }
    }
}

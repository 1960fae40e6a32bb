//! How a client asks for a scheme: a name in the list of application protocols of its ClientHello.
//!
//! That list is the only thing a server can read before a connection exists and that a foreign
//! server is bound to ignore: it picks `h3` from it and goes on. A server that was told to allow
//! the choice answers with the header [`HEADER`], in which the client sees that it was heard;
//! without the header it was not, and a comparison would compare nothing.

/// What precedes the scheme's name in the list of protocols.
const PREFIX: &str = "headstart/";

/// The header that names the scheme that governs the connection. Sent only by a server that allows
/// the choice.
pub const HEADER: &str = "headstart-scheme";

/// The protocol of HTTP/3 (RFC 9114 §3.1).
pub const HTTP3: &[u8] = b"h3";

/// The longest name that is looked at: what a client sends is anything.
const LONGEST: usize = 200;

/// The protocols that a client offers to ask for `scheme`.
#[must_use]
pub fn offer(scheme: Option<&str>) -> Vec<Vec<u8>> {
    let asked = scheme.map(|name| format!("{PREFIX}{name}").into_bytes());
    [HTTP3.to_vec()].into_iter().chain(asked).collect()
}

/// The scheme that a list of protocols asks for.
#[must_use]
pub fn asked<'a>(protocols: impl IntoIterator<Item = &'a [u8]>) -> Option<&'a str> {
    protocols
        .into_iter()
        .filter_map(|protocol| std::str::from_utf8(protocol).ok()?.strip_prefix(PREFIX))
        .find(|name| !name.is_empty() && name.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(protocols: &[&[u8]]) -> Option<String> {
        asked(protocols.iter().copied()).map(str::to_owned)
    }

    #[test]
    fn what_is_asked_is_heard() {
        let offered = offer(Some("wise-start"));
        assert_eq!(asked(offered.iter().map(Vec::as_slice)), Some("wise-start"));
        assert_eq!(offered[0], HTTP3);
    }

    #[test]
    fn who_asks_for_nothing_and_who_sends_nonsense_is_not_heard() {
        let long = format!("headstart/{}", "x".repeat(LONGEST + 1));
        for protocols in [
            &[b"h3".as_slice()][..],
            &[],
            &[b"headstart/"],
            &[b"headstart/\xff\xfe"],
            &[b"Headstart/iw10"],
            &[long.as_bytes()],
        ] {
            assert_eq!(heard(protocols), None, "{protocols:?}");
        }
    }
}

//! The description: finds the service that reports the line, and its URL (UDA §2.3).

use ureq::http::Uri;

use super::error::Error;
use super::xml;

/// A service that reports the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Its type, as the gateway spells it: the action must use this spelling.
    pub kind: String,
    /// Control URL; not checked yet.
    pub control: String,
}

/// The service's names: UPnP's first and second version, and TR-064's.
const KINDS: [&str; 3] = [
    "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1",
    "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:2",
    "urn:dslforum-org:service:WANCommonInterfaceConfig:1",
];

/// All such services of a description at `base`, in document order. A gateway with two lines
/// describes the active one first.
pub(super) fn services(description: &str, base: &Uri) -> Result<Vec<Service>, Error> {
    let document = xml::parse(description)?;
    // UDA 1.0 had an explicit base; UDA 1.1 §2.3 resolves relative URLs against the description's.
    let root = document.root_element();
    let base = xml::text(root, "URLBase")
        .filter(|base| !base.is_empty())
        .map_or_else(|| base.to_string(), str::to_owned);
    let described =
        document.descendants().filter(|node| node.tag_name().name() == "service").filter_map(|node| {
            let kind = xml::text(node, "serviceType").filter(|kind| KINDS.contains(kind))?;
            let control = xml::text(node, "controlURL").filter(|url| !url.is_empty())?;
            Some(Service { kind: kind.to_owned(), control: resolve(&base, control) })
        });
    let found: Vec<Service> = described.collect();
    if found.is_empty() { Err(Error::NoService) } else { Ok(found) }
}

/// A reference relative to a base (RFC 3986 §5.2, as gateways use it). The host is checked later.
fn resolve(base: &str, reference: &str) -> String {
    if reference.contains("://") {
        return reference.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if reference.starts_with('/') {
        return format!("{scheme}://{authority}{reference}");
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
    format!("{scheme}://{authority}{folder}{reference}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_urls_of_gateways_are_resolved() {
        #[rustfmt::skip]
        let rows = [
            ("http://192.0.2.1:49000/igddesc.xml", "/igdupnp/control/WANCommonIFC1", "http://192.0.2.1:49000/igdupnp/control/WANCommonIFC1"),
            ("http://192.0.2.1:5000/upnp/root.xml", "ctl/CmnIfCfg",                  "http://192.0.2.1:5000/upnp/ctl/CmnIfCfg"),
            ("http://192.0.2.1:5000",               "ctl/CmnIfCfg",                  "http://192.0.2.1:5000/ctl/CmnIfCfg"),
            ("http://192.0.2.1:5000",               "/ctl",                          "http://192.0.2.1:5000/ctl"),
            ("http://192.0.2.1/a/b?c=/d/",          "e",                             "http://192.0.2.1/a/e"),
            ("http://192.0.2.1/a",                  "http://192.0.2.9/b",            "http://192.0.2.9/b"),
            ("http://192.0.2.1/a",                  "//192.0.2.9/b",                 "http://192.0.2.9/b"),
        ];
        for (base, reference, expected) in rows {
            assert_eq!(resolve(base, reference), expected);
        }
    }

    #[test]
    fn a_service_of_any_known_name_is_found_at_any_depth() {
        let base: Uri = "http://192.0.2.1/d.xml".parse().expect("a URL");
        for kind in KINDS {
            let service =
                format!("<service><serviceType> {kind} </serviceType><controlURL>/c</controlURL></service>");
            let text = format!(
                "<root xmlns='urn:x'><device><deviceList><device><serviceList>{service}</serviceList></device></deviceList></device></root>"
            );
            let expected = Service { kind: kind.into(), control: "http://192.0.2.1/c".into() };
            assert_eq!(services(&text, &base), Ok(vec![expected]));
        }
        let other = "<root><service><serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType><controlURL>/c</controlURL></service></root>";
        assert_eq!(services(other, &base), Err(Error::NoService));
    }
}

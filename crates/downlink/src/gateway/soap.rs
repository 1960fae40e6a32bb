//! The action and its answer (UDA §3.2; CIC §2.4.4).

use headstart_startup::prior::Access;
use headstart_units::Rate;

use super::error::Error;
use super::xml;

pub(super) const ACTION: &str = "GetCommonLinkProperties";

/// A gateway's report of its line, validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProperties {
    /// The downstream rate of the physical layer.
    pub downstream: Rate,
    /// The access technology, if it has a name here.
    pub access: Access,
    /// True if the line is up, or its status is missing.
    pub is_up: bool,
}

pub(super) fn request(service: &str) -> String {
    // The service is one of a few constants, so nothing in it needs to be escaped.
    format!(
        "<?xml version=\"1.0\"?>\r\n\
         <s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\">\
         <s:Body><u:{ACTION} xmlns:u=\"{service}\"/></s:Body></s:Envelope>\r\n"
    )
}

pub(super) fn properties(answer: &str) -> Result<LinkProperties, Error> {
    let document = xml::parse(answer)?;
    let missing = |what| Error::Missing { what };
    let named = |name: &str| document.descendants().find(|node| node.tag_name().name() == name);
    let response =
        named("GetCommonLinkPropertiesResponse").ok_or(missing("GetCommonLinkPropertiesResponse"))?;
    let field = |name| xml::text(response, name);
    let is_up = match field("NewPhysicalLinkStatus") {
        None | Some("") => true,
        Some(status) => status.eq_ignore_ascii_case("Up"),
    };
    // A line that is down has no valid rate: gateways write 0, or the last one.
    let text = field("NewLayer1DownstreamMaxBitRate").ok_or(missing("NewLayer1DownstreamMaxBitRate"));
    let downstream = if is_up { rate(text?)? } else { Rate::ZERO };
    let access = field("NewWANAccessType").map_or(Access::Unknown, access);
    Ok(LinkProperties { downstream, access, is_up })
}

/// CIC §2.2.7: an unsigned 32-bit number, in bit/s. Gateways with faster lines write more digits.
fn rate(text: &str) -> Result<Rate, Error> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let bits = digits.parse::<u64>().ok().filter(|_| is_number);
    let refuse = |reason| Err(Error::Rate { reason });
    match bits {
        None => {
            refuse(format!("found a rate of {}, expected bit/s as digits", crate::estimate::quoted(text)))
        }
        // A counter too small for the line, or an error code made positive.
        Some(bits) if bits == u64::from(u32::MAX) || bits == i32::MAX as u64 => {
            refuse(format!("found a rate of {bits} bit/s, the largest number of its type, expected a rate"))
        }
        Some(bits) => {
            crate::estimate::plausible(Rate::from_bits_per_sec(bits)).map_err(|reason| Error::Rate { reason })
        }
    }
}

/// CIC §2.2.1: DSL, POTS, Cable, Ethernet. Gateways with other lines invent names.
fn access(text: &str) -> Access {
    let name = text.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match name.as_str() {
        "dsl" => Access::Dsl,
        "cable" => Access::Cable,
        "ethernet" => Access::Ethernet,
        _ if has(&["lte", "4g"]) => Access::Lte,
        _ if has(&["umts", "3g"]) => Access::ThreeG,
        _ => Access::Unknown,
    }
}

/// Reason of a refused action (UDA §3.2.2).
pub(super) fn fault(answer: &str) -> Error {
    let document = match xml::parse(answer) {
        Ok(document) => document,
        Err(_) => return Error::Status { code: 500 },
    };
    let text = |name: &str| {
        let found = document.descendants().find(|node| node.tag_name().name() == name);
        found.and_then(|node| node.text()).map(|text| text.trim().to_owned())
    };
    let code = text("errorCode").and_then(|code| code.parse().ok());
    match text("errorDescription").or_else(|| text("faultstring")) {
        None if code.is_none() => Error::Status { code: 500 },
        found => Error::Fault { code, text: found.unwrap_or_default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(fields: &str) -> String {
        let name = "GetCommonLinkPropertiesResponse";
        format!(
            "<s:Envelope xmlns:s='s'><s:Body><u:{name} xmlns:u='u'>{fields}</u:{name}></s:Body></s:Envelope>"
        )
    }

    fn with_rate(rate: &str) -> Result<LinkProperties, Error> {
        properties(&answer(&format!("<NewLayer1DownstreamMaxBitRate>{rate}</NewLayer1DownstreamMaxBitRate>")))
    }

    #[test]
    fn implausible_rates_are_refused_with_a_reason() {
        #[rustfmt::skip]
        let rows = [
            ("103880000",            None),
            (" 1150000000\n",        None),
            ("+50000000",            None),
            ("0",                    Some("found a rate of 0 bit/s, expected 64 kbit/s to 400 Gbit/s")),
            ("63999",                Some("found a rate of 63.992 kbit/s, expected 64 kbit/s to 400 Gbit/s")),
            ("4000000000000",        Some("found a rate of 4000 Gbit/s, expected 64 kbit/s to 400 Gbit/s")),
            ("4294967295",           Some("found a rate of 4294967295 bit/s, the largest number of its type, expected a rate")),
            ("2147483647",           Some("found a rate of 2147483647 bit/s, the largest number of its type, expected a rate")),
            ("18446744073709551616", Some("found a rate of `18446744073709551616`, expected bit/s as digits")),
            ("-1",                   Some("found a rate of `-1`, expected bit/s as digits")),
            ("++1",                  Some("found a rate of `++1`, expected bit/s as digits")),
            ("50 Mbit/s",            Some("found a rate of `50 Mbit/s`, expected bit/s as digits")),
            ("0x3e8",                Some("found a rate of `0x3e8`, expected bit/s as digits")),
            ("",                     Some("found a rate of ``, expected bit/s as digits")),
            ("&#27;[2J",             None),
        ];
        for (rate, expected) in rows {
            match (with_rate(rate), expected) {
                (Ok(found), None) => assert!(!found.downstream.is_zero(), "{rate}"),
                // Not even XML: a character that no document may hold.
                (Err(Error::Xml { .. }), None) => assert!(rate.contains("#27")),
                (Err(error), Some(expected)) => assert_eq!(error.to_string(), expected),
                (other, _) => panic!("{rate}: {other:?}"),
            }
        }
    }

    #[test]
    fn technologies_are_those_of_the_standard_and_the_mobile_names_of_gateways() {
        for (name, expected) in [
            ("DSL", Access::Dsl),
            ("Cable", Access::Cable),
            ("Ethernet", Access::Ethernet),
            ("POTS", Access::Unknown),
            ("X_AVM-DE_Fiber", Access::Unknown),
            ("X_LTE", Access::Lte),
            ("", Access::Unknown),
        ] {
            assert_eq!(access(name), expected, "{name}");
        }
    }

    #[test]
    fn a_line_that_is_down_needs_no_rate_and_one_without_a_state_is_up() {
        let status =
            |status: &str| answer(&format!("<NewPhysicalLinkStatus>{status}</NewPhysicalLinkStatus>"));
        for down in ["Down", "Initializing", "Unavailable"] {
            assert_eq!(properties(&status(down)).map(|found| found.is_up), Ok(false));
        }
        let missing = Err(Error::Missing { what: "NewLayer1DownstreamMaxBitRate" });
        assert_eq!(properties(&status("Up")), missing);
        assert_eq!(
            with_rate("50000000").map(|found| (found.is_up, found.access)),
            Ok((true, Access::Unknown))
        );
    }

    #[test]
    fn a_soap_fault_is_reported_with_its_reason() {
        let fault = |detail: &str| {
            super::fault(&format!(
                "<s:Envelope xmlns:s='s'><s:Body><s:Fault>{detail}</s:Fault></s:Body></s:Envelope>"
            ))
            .to_string()
        };
        let detail = "<faultstring>UPnPError</faultstring><detail><UPnPError><errorCode>401</errorCode><errorDescription>Invalid Action</errorDescription></UPnPError></detail>";
        assert_eq!(fault(detail), "it refused: error 401, `Invalid Action`");
        assert_eq!(
            fault("<faultstring>no\u{7}</faultstring>"),
            "found HTTP status 500, expected 200",
            "no XML"
        );
        assert_eq!(fault("<faultstring>no</faultstring>"), "it refused: `no`");
        assert_eq!(super::fault("oops").to_string(), "found HTTP status 500, expected 200");
    }
}

//! The nl80211 messages that are parsed, with the numbers of the kernel's `nl80211.h`.

use headstart_units::Rate;
use neli::consts::genl::{Cmd, NlAttrType};
use neli::genl::{GenlAttrHandle, Genlmsghdr};
use neli::neli_enum;

use super::Connection;

/// `enum nl80211_commands`.
#[neli_enum(serialized_type = "u8")]
pub enum Command {
    Unspecified = 0,
    GetInterface = 5,
    GetStation = 17,
}

impl Cmd for Command {}

/// `enum nl80211_attrs`.
#[neli_enum(serialized_type = "u16")]
pub enum Attribute {
    Unspecified = 0,
    InterfaceIndex = 3,
    InterfaceType = 5,
    StationInfo = 21,
    Ssid = 52,
}

impl NlAttrType for Attribute {}

/// `enum nl80211_sta_info`. Transmitted is the direction from this host.
#[neli_enum(serialized_type = "u16")]
pub enum StationInfo {
    Invalid = 0,
    TransmitBitrate = 8,
    ReceiveBitrate = 14,
}

impl NlAttrType for StationInfo {}

/// `enum nl80211_rate_info`, in units of 100 kbit/s; the first has 16 bits, up to 6.5 Gbit/s.
#[neli_enum(serialized_type = "u16")]
pub enum RateInfo {
    Invalid = 0,
    Bitrate16 = 1,
    Bitrate32 = 5,
}

impl NlAttrType for RateInfo {}

/// `NL80211_IFTYPE_STATION` and `NL80211_IFTYPE_P2P_CLIENT`.
const CLIENTS: [u32; 2] = [2, 8];

pub(super) type Message = Genlmsghdr<Command, Attribute>;

/// Parses an answer to *get interface*.
pub(super) fn read_interface(message: &Message, connection: &mut Connection) {
    let attributes = message.attrs().get_attr_handle();
    let kind = attributes.get_attr_payload_as::<u32>(Attribute::InterfaceType);
    connection.is_client = kind.is_ok_and(|kind| CLIENTS.contains(&kind));
    let ssid = attributes.get_attribute(Attribute::Ssid).map(|ssid| ssid.nla_payload().as_ref());
    // Arbitrary bytes, usually text.
    connection.ssid =
        ssid.filter(|ssid| !ssid.is_empty()).map(|ssid| String::from_utf8_lossy(ssid).into_owned());
}

/// Parses an answer to *get station*. A client has one, its access point; the fastest counts.
pub(super) fn read_station(message: &Message, connection: &mut Connection) {
    let attributes = message.attrs().get_attr_handle();
    let Ok(station) = attributes.get_nested_attributes::<StationInfo>(Attribute::StationInfo) else { return };
    connection.received = connection.received.max(rate(&station, StationInfo::ReceiveBitrate));
    connection.sent = connection.sent.max(rate(&station, StationInfo::TransmitBitrate));
}

fn rate(station: &GenlAttrHandle<'_, StationInfo>, which: StationInfo) -> Option<Rate> {
    let rate = station.get_nested_attributes::<RateInfo>(which).ok()?;
    let wide = rate.get_attr_payload_as::<u32>(RateInfo::Bitrate32).ok();
    let narrow = rate.get_attr_payload_as::<u16>(RateInfo::Bitrate16).ok();
    let hundreds_of_kbit = wide.or(narrow.map(u32::from)).filter(|rate| *rate > 0)?;
    Some(Rate::from_bits_per_sec(u64::from(hundreds_of_kbit) * 100_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use neli::FromBytesWithInput;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// An attribute in the kernel's layout: length and type in host byte order, then the payload,
    /// padded to a multiple of four.
    fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((payload.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// A generic netlink message: command, version, two reserved bytes.
    fn message(command: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        [vec![command, 1, 0, 0], attributes.concat()].concat()
    }

    fn parsed(bytes: &[u8]) -> Option<Message> {
        Message::from_bytes_with_input(&mut Cursor::new(bytes), bytes.len()).ok()
    }

    fn station(rates: &[(u16, Vec<u8>)]) -> Connection {
        let nested: Vec<u8> = rates.iter().flat_map(|(kind, info)| attribute(*kind | 0x8000, info)).collect();
        // Signal (7) and connected time (16) are siblings of the rates.
        let nested = [attribute(7, &[0xc8]), nested, attribute(16, &60_u32.to_ne_bytes())].concat();
        let bytes = message(
            19,
            &[
                attribute(3, &2_u32.to_ne_bytes()),
                attribute(6, &[2, 0, 0, 0, 0, 1]),
                attribute(21 | 0x8000, &nested),
            ],
        );
        let mut connection = Connection::default();
        read_station(&parsed(&bytes).expect("a message"), &mut connection);
        connection
    }

    #[test]
    fn a_client_and_its_networks_name_are_read() {
        let with = |kind: u32, ssid: &[u8]| {
            let bytes = message(
                7,
                &[
                    attribute(3, &2_u32.to_ne_bytes()),
                    attribute(4, b"wlan0\0"),
                    attribute(5, &kind.to_ne_bytes()),
                    attribute(52, ssid),
                ],
            );
            let mut connection = Connection::default();
            read_interface(&parsed(&bytes).expect("a message"), &mut connection);
            (connection.is_client, connection.ssid)
        };
        assert_eq!(with(2, b"home"), (true, Some("home".into())));
        assert_eq!(with(3, b"mine"), (false, Some("mine".into())), "an access point");
        assert_eq!(with(2, b""), (true, None), "not connected");
    }

    #[test]
    fn the_32_bit_rate_is_preferred_where_present() {
        let narrow = |rate: u16| attribute(1, &rate.to_ne_bytes());
        let wide = |rate: u32| attribute(5, &rate.to_ne_bytes());
        let mbit = Rate::from_mbit_per_sec;
        // MCS 7 (2), and 802.11ac's MCS (6) and streams (7), are siblings of the rate.
        let received = [narrow(8667), wide(8667), attribute(6, &[9]), attribute(7, &[2])].concat();
        let both = station(&[(14, received), (8, [narrow(1733), attribute(2, &[7])].concat())]);
        assert_eq!(
            (both.received, both.sent),
            (Some(Rate::from_bits_per_sec(866_700_000)), Some(Rate::from_bits_per_sec(173_300_000)))
        );
        let fast = station(&[(14, wide(115_000))]);
        assert_eq!(fast.received, Some(mbit(11_500)), "too fast for 16 bits");
        let silent = station(&[(14, narrow(0)), (8, attribute(2, &[7]))]);
        assert_eq!((silent.received, silent.sent), (None, None), "zero is unknown");
    }

    proptest! {
        #[test]
        fn no_message_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), nested: bool) {
            let bytes = if nested { message(19, &[attribute(21, &bytes)]) } else { bytes };
            if let Some(message) = parsed(&bytes) {
                let mut connection = Connection::default();
                read_interface(&message, &mut connection);
                read_station(&message, &mut connection);
            }
        }
    }
}

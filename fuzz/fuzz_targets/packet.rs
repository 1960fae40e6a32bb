//! Packets and logs of the emulator: for any bytes nothing panics, a mark preserves the length, and
//! a malformed log is rejected with the expectation.

#![no_main]

use headstart_emu::packet::{Content, HeaderSummary, Packet, is_link_local};
use headstart_emu::record::ParsedLog;
use headstart_net::Packet as _;
use headstart_units::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let header = HeaderSummary::of_ip(bytes);
    let _ = is_link_local(bytes);
    let content = Content::Ip(bytes.to_vec());
    let mut packet = Packet { number: 0, arrived: Time::ZERO, client: 0, content, header };
    let _ = (packet.flow_key(), packet.host_key(), packet.is_ecn_capable());
    packet.mark_congestion_experienced();
    assert_eq!(packet.bytes().len(), bytes.len());
    if let Err(error) = ParsedLog::read(bytes) {
        assert!(error.to_string().contains("expected"));
    }
});

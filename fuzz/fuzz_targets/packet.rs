//! Packets and logs of the emulator: whatever the bytes, nothing panics, a mark changes no length, and a log that is none says what
//! was expected.

#![no_main]

use headstart_emu::packet::{Content, Headline, Parcel, is_link_local};
use headstart_emu::record::Record;
use headstart_net::Packet;
use headstart_units::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let headline = Headline::of_ip(bytes);
    let _ = is_link_local(bytes);
    let content = Content::Ip(bytes.to_vec());
    let mut parcel = Parcel { number: 0, arrived: Time::ZERO, client: 0, content, headline };
    let _ = (parcel.flow_key(), parcel.host_key(), parcel.is_ecn_capable());
    parcel.mark_congestion_experienced();
    assert_eq!(parcel.bytes().len(), bytes.len());
    if let Err(error) = Record::read(bytes) {
        assert!(error.to_string().contains("expected"));
    }
});

//! The certificate of the accepting side, in the last round trip of the handshake.
//!
//! ```text
//!  opener                         accepting side
//!    SYN               ------->
//!                      <-------   parts: three times the SYN if that is the first round trip
//!    acknowledgements  ------->   the address is validated
//!                      <-------   further parts, by slow start from ten; the SYN-ACK is the last
//! ```
//!
//! # Deviations
//!
//! - A lost part is sent again when the opener repeats its SYN, at the initial timeout: by slow
//!   start from one. A stack that has measured the RTT is faster.

use super::*;

/// Payload of a datagram of QUIC's handshake (RFC 9000 §14.1), also of the opener's first.
const DATAGRAM: u64 = 1200;
/// RFC 9000 §8.1.
const LIMIT: u64 = 3;
/// Bytes in addition to the certificates: ServerHello, EncryptedExtensions, CertificateVerify and
/// Finished.
const MESSAGES: u64 = 400;
/// Parts at once after validation.
const WINDOW: u64 = 10;
/// Most parts: one for each bit.
const MOST_PARTS: u64 = 64;

impl TcpConfig {
    /// Size of the opener's packets that have to fill a datagram if this is QUIC (RFC 9000 §14.1):
    /// its first one, and the first answer to the other side's.
    pub(super) fn opening(&self, size: Bytes) -> u16 {
        let is_quic = !self.certificate.is_zero() && self.handshakes == 1;
        if is_quic { (DATAGRAM + self.header.get()) as u16 } else { size.get() as u16 }
    }

    /// Payload of a part and of all parts, if there is a certificate.
    fn parts(&self) -> Option<(u64, u64)> {
        let all = self.certificate.get() + MESSAGES;
        let part = if self.handshakes > 1 { self.mss.get() } else { DATAGRAM };
        (!self.certificate.is_zero()).then(|| (part, all.min(part * MOST_PARTS)))
    }
}

impl<R: Recorder> Simulation<R> {
    /// A SYN arrived, which `answer` is for: true if the certificate comes first.
    pub(super) fn begin_certificate(&mut self, id: FlowId, attempt: u8, answer: Body) -> bool {
        let Some(flow) = self.flows.get_mut(id) else { return false };
        let config = &self.groups[usize::from(flow.group)].tcp;
        let is_last = flow.handshakes + 1 >= config.handshakes;
        let (Some((part, all)), Body::SynAck { note, .. }) = (config.parts().filter(|_| is_last), answer)
        else {
            return false;
        };
        if u64::from(flow.certificate.acknowledged) == all.div_ceil(part) {
            return false;
        }
        let certificate = &mut flow.certificate;
        let window = match (certificate.sent, attempt) {
            (0, _) if config.handshakes > 1 => WINDOW,
            (0, _) => LIMIT,
            // A copy of the SYN.
            (_, first) if first == flow.first_attempt && usize::from(first) + 1 < ATTEMPTS => return true,
            _ => {
                certificate.restarted_at = Some(certificate.acknowledged);
                1
            }
        };
        (certificate.sent, certificate.note) = (certificate.acknowledged, note);
        let most = u64::from(certificate.acknowledged) + window;
        self.send_certificate(id, attempt, most);
        true
    }

    /// Sends parts up to `most`, and behind the last of them the SYN-ACK.
    fn send_certificate(&mut self, id: FlowId, attempt: u8, most: u64) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        let Some((part, all)) = config.parts() else { return };
        let (header, syn) = (config.header.get(), config.syn.get());
        let (opener, note) = (flow.opener, flow.certificate.note);
        let route = Self::forward(flow) + u16::from(opener == Opener::Sender);
        let first = u64::from(flow.certificate.sent);
        let end = most.min(all.div_ceil(part)).max(first);
        flow.certificate.sent = end as u8;
        let is_whole = end == all.div_ceil(part) && end > first;
        if is_whole && opener == Opener::Receiver && !std::mem::replace(&mut flow.certificate.is_whole, true)
        {
            // The answer to the first SYN-ACK times the handshake.
            flow.attempts[usize::from(attempt)] = now;
        }
        for number in first..end {
            let size = part.min(all - number * part) + header;
            let body = Body::Certificate { number: number as u8, attempt };
            self.send(id, route, size as u16, Ecn::NotCapable, body);
        }
        if is_whole {
            self.send(id, route, syn as u16, Ecn::NotCapable, Body::SynAck { attempt, note });
        }
    }

    /// A part arrived at the opener, or an acknowledgement at the other side.
    pub(super) fn on_certificate(&mut self, id: FlowId, number: u8, attempt: u8, route: u16) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let to_sender = !route.is_multiple_of(2);
        let certificate = &mut flow.certificate;
        if to_sender == (flow.opener == Opener::Receiver) {
            certificate.acknowledged = certificate.acknowledged.max(number);
            let acknowledged = u64::from(certificate.acknowledged);
            let most = match certificate.restarted_at {
                None => WINDOW + 2 * acknowledged,
                Some(at) => 1 + 2 * acknowledged - u64::from(at),
            };
            return self.send_certificate(id, attempt, most);
        }
        if certificate.arrived == 0 {
            certificate.first_at = now;
        }
        certificate.arrived |= 1 << number;
        let number = certificate.arrived.trailing_ones() as u8;
        let config = &self.groups[usize::from(flow.group)].tcp;
        let size = if number == 1 { config.opening(config.header) } else { config.header.get() as u16 };
        self.send(id, route ^ 1, size, Ecn::NotCapable, Body::Certificate { number, attempt });
        let answer = self.flows.get_mut(id).and_then(|flow| flow.certificate.answer.take());
        if let Some((attempt, note, route)) = answer {
            self.on_syn_ack(id, attempt, note, route);
        }
    }

    /// The SYN-ACK arrived: true if a part of the certificate has not, and the opener waits for it.
    pub(super) fn waits_for_certificate(
        &mut self,
        id: FlowId,
        attempt: u8,
        note: RouterOption,
        route: u16,
    ) -> bool {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return false };
        let config = &self.groups[usize::from(flow.group)].tcp;
        let is_last = flow.handshakes + 1 >= config.handshakes;
        let Some((part, all)) = config.parts().filter(|_| is_last) else { return false };
        let certificate = &mut flow.certificate;
        if u64::from(certificate.arrived.trailing_ones()) < all.div_ceil(part) {
            certificate.answer = Some((attempt, note, route));
            return true;
        }
        if flow.opener == Opener::Sender && flow.client_repeats == 0 {
            // The first part times the handshake, not the last.
            flow.attempts[usize::from(attempt)] += now.since(certificate.first_at);
        }
        false
    }
}

//! Connection establishment: SYN, SYN-ACK, request, routers' answer, and the sender's start.

use super::*;

impl<R: Recorder> Simulation<R> {
    /// Route of packets from sender to receiver; the one back has the number after it.
    pub(super) fn forward(flow: &Flow) -> u16 {
        flow.class * 2
    }

    pub(super) fn send_syn(&mut self, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        flow.attempt = (u32::from(flow.first_attempt) + flow.client_tries).min(ATTEMPTS as u32 - 1) as u8;
        if flow.opener == Opener::Sender {
            flow.attempts[usize::from(flow.attempt)] = now;
        }
        let route = Self::forward(flow) + u16::from(flow.opener == Opener::Receiver);
        let attempt = flow.attempt;
        let size = config.opening(config.syn);
        flow.client_at = now + (config.initial_rto * (1 << flow.client_tries.min(6))).min(config.max_rto);
        let note =
            if flow.opener == Opener::Sender { self.question(id, attempt) } else { RouterOption::Nothing };
        self.schedule(id);
        self.send(id, route, size, Ecn::NotCapable, Body::Syn { attempt, note });
    }

    /// The request to routers in the sender's packet of the handshake. A packet that is sent again
    /// has none: the first may have been dropped for its request (RFC 4782 §4.7.2).
    pub(super) fn question(&mut self, id: FlowId, attempt: u8) -> RouterOption {
        let Some(flow) = self.flows.get_mut(id) else { return RouterOption::Nothing };
        let group = &self.groups[usize::from(flow.group)];
        if group.scheme.requirements().rate_stamps {
            return RouterOption::Labelled(Label::unstamped(Span::ZERO));
        }
        let known = RequestInputs {
            mss: group.tcp.mss,
            size: (flow.size_known && !flow.unread.is_empty())
                .then(|| flow.unread.iter().map(|(_, bytes)| *bytes).sum()),
            rtt: None,
            receive_window: None,
            is_after_idle: false,
        };
        let Some(rate) = group.scheme.request(&known).filter(|_| attempt == flow.first_attempt) else {
            return RouterOption::Nothing;
        };
        let random = Seed(flow.serial).child("quick-start").0;
        let (sent_request, request) =
            SentRequest::new(rate, IP_TTL, (random >> 32) as u8, Nonce::new(random as u32));
        flow.request = Some(sent_request);
        RouterOption::Request { request: request.into(), host: flow.peer }
    }

    /// There is more to send after an idle time: a scheme that repeats its request does so on a
    /// packet of its own before the data.
    pub(super) fn repeat_request(&mut self, id: FlowId, bytes: Bytes) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let group = &self.groups[usize::from(flow.group)];
        // RFC 4782 §4.4: no further request after a wrong nonce.
        let failed_nonce = flow.grant == Grant::Denied(DenialReason::Nonce);
        if flow.state != ConnectionState::Established || failed_nonce {
            return;
        }
        let known = RequestInputs {
            mss: group.tcp.mss,
            size: flow.size_known.then_some(bytes),
            rtt: Some(flow.sender.rtt().smoothed),
            receive_window: Some(group.tcp.receive_window),
            is_after_idle: true,
        };
        let Some(rate) = flow.sender.controller().scheme().request(&known) else { return };
        flow.later_requests.0 += 1;
        let random = Seed(flow.serial ^ u64::from(flow.later_requests.0) << 48).child("quick-start").0;
        let (sent_request, request) =
            SentRequest::new(rate, IP_TTL, (random >> 32) as u8, Nonce::new(random as u32));
        flow.request = Some(sent_request);
        let note = RouterOption::Request { request: request.into(), host: flow.peer };
        let (route, size) = (Self::forward(flow), group.tcp.syn.get() as u16);
        self.send(id, route, size, Ecn::NotCapable, Body::RateRequest { note });
    }

    /// A request without a connection. Its flow number is one that no connection ever has, so the
    /// receiving host does not answer.
    pub(super) fn send_bare(&mut self, bare: &BareRequest) {
        let random = Seed(bare.number).child("bare request").0;
        let (_, request) =
            SentRequest::new(bare.rate, IP_TTL, (random >> 32) as u8, Nonce::new(random as u32));
        let note = RouterOption::Request { request: request.into(), host: bare.host };
        let id = FlowId { slot: u32::MAX - bare.number as u32, generation: (bare.number >> 32) as u16 };
        let size = bare.size.get().min(u64::from(u16::MAX)) as u16;
        self.send(id, bare.class * 2, size, Ecn::NotCapable, Body::RateRequest { note });
    }

    /// All datagrams are of one flow, of which no end is kept here. Each has its time of sending.
    pub(super) fn send_datagram(&mut self, class: u16, size: Bytes) {
        let number = (self.now.as_nanos() / STAMP.as_nanos()) as u32;
        self.recorder.datagram(self.now, None);
        let id = FlowId { slot: u32::MAX, generation: 0 };
        let size = size.get().min(u64::from(u16::MAX)) as u16;
        self.send(id, class * 2, size, Ecn::NotCapable, Body::Datagram { number });
    }

    /// The receiver answers a request in the middle of a connection.
    pub(super) fn on_question(&mut self, id: FlowId, answer: RouterOption) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let size = self.groups[usize::from(flow.group)].tcp.syn.get() as u16;
        let route = Self::forward(flow) + 1;
        self.send(id, route, size, Ecn::NotCapable, Body::Answer { note: answer });
    }

    pub(super) fn on_answer(&mut self, id: FlowId, note: RouterOption) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        self.recorder.focus(flow.serial);
        let grant = verdict(flow.request.as_ref(), note);
        if grant == Grant::Denied(DenialReason::Nonce) {
            flow.grant = grant;
        }
        if let Grant::Granted(rate) = grant
            && flow.sender.on_grant(self.now, rate, config, &mut self.recorder)
        {
            flow.later_requests.1 += 1;
        }
        self.pump(id);
    }

    /// The receiver's answer to a note that arrived on this route.
    pub(super) fn answer(&self, note: RouterOption, route: u16) -> RouterOption {
        match note {
            RouterOption::Request { request, .. } => RouterOption::Answering(
                Echo::of(&request.into(), IP_TTL.wrapping_sub(self.path.routers(route))).into(),
            ),
            RouterOption::Labelled(label) => RouterOption::Stamped(label.stamp),
            _ => RouterOption::Nothing,
        }
    }

    /// The receiver that opened completes the handshake, or requests the next message.
    pub(super) fn send_request(&mut self, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        let route = Self::forward(flow) + 1;
        let body = Body::Request { number: flow.requests_sent, attempt: flow.attempt, note: flow.echo };
        let size = config.header.get() as u16;
        flow.client_at = now + (config.initial_rto * (1 << flow.client_tries.min(6))).min(config.max_rto);
        self.schedule(id);
        self.send(id, route, size, Ecn::NotCapable, body);
    }

    pub(super) fn on_client_timer(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        flow.client_at = Time::NEVER;
        flow.client_tries += 1;
        flow.client_repeats += 1;
        if flow.opener_done { self.send_request(id) } else { self.send_syn(id) }
    }

    /// `answer` is the receiver's; a sender that was opened to makes its own request.
    pub(super) fn on_syn(&mut self, id: FlowId, attempt: u8, answer: RouterOption) {
        let now = self.now;
        // One of an earlier round trip was answered.
        let Some(flow) = self.flows.get_mut(id).filter(|flow| attempt >= flow.first_attempt) else { return };
        let size = self.groups[usize::from(flow.group)].tcp.syn.get() as u16;
        if flow.opener == Opener::Receiver {
            // A copy of a SYN arrives later than the one that is timed; only the last number is
            // shared by several attempts.
            let at = usize::from(attempt);
            if flow.attempts[at] == Time::ZERO || at == ATTEMPTS - 1 {
                flow.attempts[at] = now;
            }
        }
        let opener = flow.opener;
        let route = Self::forward(flow) + u16::from(opener == Opener::Sender);
        if let Some(other) = flow.other_half {
            self.answer_other(other, attempt);
        }
        let note = if opener == Opener::Receiver { self.question(id, attempt) } else { answer };
        let answer = Body::SynAck { attempt, note };
        if self.begin_certificate(id, attempt, answer) {
            return;
        }
        self.send(id, route, size, Ecn::NotCapable, answer);
        let Some(flow) = self.flows.get_mut(id) else { return };
        if self.groups[usize::from(flow.group)].tcp.handshakes == 0 && opener == Opener::Receiver {
            self.on_request(id, 1, attempt, RouterOption::Nothing);
        }
    }

    pub(super) fn on_syn_ack(&mut self, id: FlowId, attempt: u8, note: RouterOption, route: u16) {
        let answer = self.answer(note, route);
        if self.flows.get_mut(id).is_none_or(|flow| flow.opener_done || attempt < flow.first_attempt)
            || self.waits_for_certificate(id, attempt, note, route)
        {
            return;
        }
        let Some(flow) = self.flows.get_mut(id) else { return };
        flow.handshakes += 1;
        let handshakes = self.groups[usize::from(flow.group)].tcp.handshakes;
        if flow.handshakes < handshakes {
            flow.first_attempt = (flow.attempt + 1).min(ATTEMPTS as u8 - 1);
            flow.client_tries = 0;
            return self.send_syn(id);
        }
        flow.opener_done = true;
        flow.client_at = Time::NEVER;
        if handshakes == 0 && flow.opener == Opener::Receiver && flow.requests_sent == 1 {
            // The SYN had the only request.
            return;
        }
        match flow.opener {
            Opener::Sender => {
                self.complete_other(id, attempt);
                self.establish(id, attempt, note);
            }
            Opener::Receiver => {
                flow.echo = answer;
                flow.client_tries = 0;
                flow.attempt = attempt;
                self.send_request(id);
            }
        }
    }

    pub(super) fn on_request(&mut self, id: FlowId, number: u32, attempt: u8, note: RouterOption) {
        let now = self.now;
        self.seat(id);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        let mut after_idle = None;
        while flow.requests_received < number {
            flow.requests_received += 1;
            if let Some(bytes) = flow.pending_responses.pop_front() {
                flow.written += bytes;
                if flow.sender.write(now, bytes, config) {
                    after_idle = Some(bytes);
                }
            }
        }
        let is_opening = flow.state == ConnectionState::Opening;
        if is_opening
            && let Some(first) = flow.other_half.take()
            && let Some(first) = self.flows.get_mut(first)
        {
            first.other_half = None;
        }
        if let Some(bytes) = after_idle {
            self.repeat_request(id, bytes);
        }
        self.notify_more(id);
        if is_opening { self.establish(id, attempt, note) } else { self.pump(id) }
    }

    /// The sender's connection is established.
    fn establish(&mut self, id: FlowId, attempt: u8, note: RouterOption) {
        let now = self.now;
        self.seat(id);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let group = &self.groups[usize::from(flow.group)];
        flow.state = ConnectionState::Established;
        flow.established_at = Some(now);
        flow.sender.limits().begin(now, now.since(flow.opened_at));
        let history = if group.history_capacity > 0 {
            let peer = group.scheme.requirements().history_key(peer_address(flow.peer));
            let (known, lease) = self.histories[usize::from(flow.group)].open(peer);
            flow.lease = Some(lease);
            known
        } else {
            None
        };
        flow.had_history = history.is_some();
        flow.grant = verdict(flow.request.as_ref(), note);
        let mut handshake_rtt = now.since(flow.attempts[usize::from(attempt)]);
        if group.tcp.handshakes == 0 && flow.opener == Opener::Receiver {
            flow.sender.assume_rtt();
            handshake_rtt = history.map_or(group.tcp.initial_rto, |known| known.record.rt_prop);
            if history.is_none() {
                let slow_start =
                    Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
                flow.sender.replace_scheme(slow_start, group.base, &group.tcp);
            }
        }
        let prior = Prior {
            handshake_retransmitted: flow.client_repeats > 0,
            initial_window: group.tcp.initial_window(),
            flow_size: flow.size_known.then_some(flow.written),
            history,
            hint: group.hint_of(flow.peer),
            granted: if let Grant::Granted(rate) = flow.grant { Some(rate) } else { None },
            ..Prior::bare(
                now,
                group.tcp.mss,
                handshake_rtt.max(Span::from_nanos(1)),
                group.tcp.receive_window,
            )
        };
        if flow.written.is_zero() {
            // The opener's other half completes the handshake (see `workload::conversations`).
            flow.client_at = Time::NEVER;
            flow.waiting = Some(Box::new(prior));
            return;
        }
        self.begin(id, &prior);
        self.pump(id);
    }

    /// The scheme begins, and reserves its first flight if it is one that does.
    fn begin(&mut self, id: FlowId, prior: &Prior) {
        let now = self.now;
        let prior = &self.inform(id, prior);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let group = usize::from(flow.group);
        let (sender, recorder) = (&mut flow.sender, &mut self.recorder);
        recorder.focus(flow.serial);
        match flow.lease.as_mut().filter(|_| self.groups[group].scheme.requirements().reserves_credit) {
            Some(lease) => {
                flow.has_reservation = true;
                self.histories[group].reserve(lease, &mut |credit| {
                    sender.establish(now, &Prior { shared_credit: Some(credit), ..*prior }, recorder);
                    sender.first_flight()
                });
            }
            None => sender.establish(now, prior, recorder),
        }
    }

    /// The application at the sender hands a message over. With the first one of a connection that
    /// was opened without any the scheme begins. A rate that Quick-Start routers granted in the
    /// handshake may be used within a retransmission timeout of it (before there is a second
    /// sample, three round trips: RFC 6298 §2.2); later a scheme that repeats its request does so,
    /// and so does one that made none in the handshake because the size was unknown.
    pub(super) fn write(&mut self, id: FlowId, bytes: Bytes) {
        let now = self.now;
        self.seat(id);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let group = &self.groups[usize::from(flow.group)];
        flow.unread.push_back((now, bytes));
        flow.written += bytes;
        let mut is_late = flow.sender.write(now, bytes, &group.tcp);
        let is_first = flow.waiting.is_some();
        if let Some(known) = flow.waiting.take() {
            let timeout = (known.handshake_rtt * 3).max(group.tcp.min_rto);
            is_late = now.since(known.now) > timeout || flow.request.is_none();
            // The rate that RCP routers stamped is the last that is known, however old it is.
            let granted = known.granted.filter(|_| !is_late || group.scheme.requirements().rate_stamps);
            let flow_size = flow.size_known.then_some(bytes);
            let prior = Prior { now, flow_size, granted, ..*known };
            self.begin(id, &prior);
        }
        if is_late {
            self.repeat_request(id, bytes);
        }
        if !is_first {
            self.notify_more(id);
        }
        self.pump(id);
    }

    /// Reports more data to the scheme, on a connection that carries several answers.
    pub(super) fn notify_more(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        if config.several_responses && flow.size_known && flow.state == ConnectionState::Established {
            self.recorder.focus(flow.serial);
            flow.sender.on_new_data(self.now, config, &mut self.recorder);
        }
    }
}

/// The time to live that packets begin with.
const IP_TTL: u8 = 64;

/// The routers' answer, as verified by the sender.
fn verdict(request: Option<&SentRequest>, note: RouterOption) -> Grant {
    match (request, note) {
        (Some(sent_request), RouterOption::Answering(echo)) => match sent_request.check_echo(&echo.into()) {
            Ok(rate) => Grant::Granted(rate),
            Err(reason) => Grant::Denied(reason),
        },
        (Some(_), _) => Grant::Denied(DenialReason::NoEcho),
        (None, RouterOption::Stamped(stamp)) => stamp.rate().map_or(Grant::Unstamped, Grant::Granted),
        (None, _) => Grant::NotRequested,
    }
}

/// The address of peer number `peer`, out of 10.0.0.0/8 for the first 2^24: the key of its record.
#[must_use]
pub fn peer_address(peer: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0000_u32.wrapping_add(peer)))
}

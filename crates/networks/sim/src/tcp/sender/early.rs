//! Segments that leave before their turn ([`Repair::Early`](headstart_startup::repair::Repair)).
//!
//! Such a segment has no place on the scoreboard until its turn comes: then it is skipped if it has
//! arrived, and sent if not. It counts neither as in flight nor for loss detection, and the window
//! does not grow by it.

use super::*;

impl Sender {
    /// One past the last segment that the data at hand and the receiver's window allow.
    pub(super) fn written_end(&self, config: &TcpConfig) -> u64 {
        let mss = config.mss.get().max(1);
        let written = self.ends.front().map_or(0, |end| end - self.sent);
        let room = self.peer_window.limit(self.acknowledged, config).saturating_sub(self.sent);
        let segments = if written <= room { written.div_ceil(mss) } else { room / mss };
        u64::from(self.segments.end()) + segments
    }

    /// Bytes of a segment whose turn has not come.
    fn payload_ahead(&self, number: u32, config: &TcpConfig) -> u16 {
        let mss = config.mss.get();
        let before = u64::from(number - self.segments.end()) * mss;
        let left = self.ends.front().map_or(0, |end| (end - self.sent).saturating_sub(before));
        left.min(mss) as u16
    }

    /// Sends a segment before its turn.
    pub(super) fn send_early(
        &mut self,
        now: Time,
        number: u32,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Departure {
        let payload = self.payload_ahead(number, config);
        let transmission = self.launch(now, number, true, false);
        self.early_from = self.early_from.min(number);
        self.counts.copies += 1;
        self.counts.ahead = 1;
        self.counted(now, payload);
        let offset = self.sent + u64::from(number - self.segments.end()) * config.mss.get();
        if self.ends.front() == Some(&(offset + u64::from(payload))) {
            self.early_end = number;
            self.message_ends.push_back(number);
        }
        recorder.sender(now, || {
            let (payload, transmission) = (Bytes::new(u64::from(payload)), Transmission::Copy);
            self.snapshot(SenderEvent::Sent { offset, payload, transmission })
        });
        Departure { priority: self.repair.priority(), ..Departure::alone(number, transmission, payload) }
    }

    /// True if this arrival was that of an early segment's early transmission.
    #[inline]
    pub(super) fn was_early(&self, ack: &Acknowledgement) -> bool {
        ack.trigger >= self.early_from && self.flights.get(ack.transmission).is_none_or(|it| it.is_copy)
    }

    /// The receiver has a segment that was sent early.
    pub(super) fn arrived_early(&mut self, now: Time, number: u32) {
        if number >= self.segments.end() {
            self.early.insert(number);
            return;
        }
        if self.segments.get(number).is_some_and(|segment| !segment.is(DELIVERED)) {
            let segment = self.settle(number);
            self.rate.on_delivered_late(now, Bytes::new(u64::from(segment.payload)));
        }
    }

    /// Passes over all segments below `cumulative`, and those after them that arrived early.
    pub(super) fn skip_early(&mut self, now: Time, cumulative: u32, config: &TcpConfig) {
        loop {
            let number = self.segments.end();
            if !self.early.remove(&number) && number >= cumulative {
                return;
            }
            let payload = self.payload_ahead(number, config);
            let transmission = self.flights.end();
            self.form(number, payload, transmission, DELIVERED);
            self.delivered_beyond += 1;
            self.rate.on_delivered_late(now, Bytes::new(u64::from(payload)));
        }
    }
}

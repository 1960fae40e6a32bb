//! Conversion of options to scenarios: path, workload and settings become a run here.

mod limits;

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use headstart_sim::random::Random;
use headstart_sim::tcp::{DelayedAck, Pacing, Probe};
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::media::Media;
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::spoof::Spoof;
use headstart_sim::workload::{Mixed, Opener, Workload};
use headstart_sim::{ElementModel, Group, Ideal, Seed, TcpConfig};
use headstart_startup::Startup as _;
use headstart_startup::catalogue::{Entry, Needs};
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use crate::carrier::{Carrier, Carriers, Run};
use crate::options::{
    AckName, DelayFile, DetectionName, Environment, FetchName, LaterName, PathOptions, RunOptions, SERVERS,
    SchemeName, SizeName, TransportName, TransportOptions, UpOptions, WorkloadOptions, name_of,
};
use crate::schemes;
use crate::workload::files::ArrivalFile;
use crate::workload::web::har;

/// Largest certificates: 64 parts of a handshake in the model.
const LARGEST_CERTIFICATE: Bytes = Bytes::new(64_000);

/// The least that a packet of QUIC's first flights takes on a link: 1200 bytes (RFC 9000 §14.1) in
/// UDP and IPv4. Every path that QUIC can take carries it.
pub const SMALLEST_INITIAL: Bytes = Bytes::new(1228);

/// The group of the scheme under test.
pub const TESTED: u16 = 0;
/// The group of the reference's flows in a mixture.
pub const BESIDE: u16 = 1;
/// The group of long flows in the background.
pub const LONG: u16 = 2;
/// Groups in a scenario.
pub const GROUPS: usize = 3;

/// Segments that a Linux receiver acknowledges one by one while its window grows from 64 kB to the
/// size of its buffer: about 370.
const LINUX_GROWING: u32 = 370;

/// The reference of every comparison: the start of most of today's senders.
pub const REFERENCE: &str = "iw10";

/// Connections of browsers over HTTP/1.1.
const BROWSERS: Fetch = Fetch::Persistent(6);

/// All of a comparison but the scheme, the seed and the load.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The path.
    pub path: PathOptions,
    /// The TCP model.
    pub transport: TransportOptions,
    /// The workload.
    pub workload: WorkloadOptions,
    /// Execution of the runs.
    pub run: RunOptions,
    /// Pages, if HAR files were given.
    pub pages: Vec<Vec<Object>>,
    /// Method by which each of them is fetched; the last one holds for all further ones.
    pub fetches: Vec<Fetch>,
    /// Notes on those files for readers of the results.
    pub notes: Vec<String>,
    carrier: &'static dyn Carrier,
    sizes: headstart_sim::sizes::Sizes,
}

/// Schemes that take part in a run.
#[derive(Clone, Copy, Debug)]
pub struct SchemeMix {
    /// The scheme under test.
    pub tested: &'static Entry,
    /// Half of the flows run this instead.
    pub beside: Option<&'static Entry>,
}

impl Setup {
    /// Checks the constraints between options, chooses the carrier and reads HAR files.
    ///
    /// # Errors
    /// If options contradict each other, the carrier is missing or lacks one, or a file is invalid.
    pub fn new(
        carriers: Carriers,
        path: PathOptions,
        transport: TransportOptions,
        workload: WorkloadOptions,
        run: RunOptions,
    ) -> Result<Self> {
        path.plan(&UpOptions::default())?;
        ensure!(
            workload.long_share.of(1000) < 1000,
            "--long-share: found {}, expected less than 100 %",
            workload.long_share
        );
        ensure!(!workload.cap.is_zero(), "--cap: found 0 B, expected more than 0");
        ensure!(!workload.long_size.is_zero(), "--long-size: found 0, expected more than 0");
        ensure!(workload.load.of(1_000_000) > 0, "--load: found 0 %, expected more than 0");
        ensure!(workload.load.of(1000) <= 5000, "--load: found {}, expected 500 % at most", workload.load);
        ensure!(!run.duration.is_zero(), "--duration: found 0, expected more than 0");
        ensure!(
            run.duration <= Span::from_secs(1_000_000),
            "--duration: found {}, expected a million seconds at most",
            run.duration
        );
        ensure!(
            run.drain <= Span::from_secs(100_000),
            "--drain: found {}, expected 100 000 s at most",
            run.drain
        );
        ensure!(
            run.warm_up < run.duration,
            "--warm-up: found {}, expected less than the duration of {}",
            run.warm_up,
            run.duration
        );
        ensure!(
            (Bytes::new(576)..=Bytes::new(9000)).contains(&transport.mtu),
            "--mtu: found {}, expected 576 to 9000 B",
            transport.mtu
        );
        ensure!(
            (Bytes::new(20)..=Bytes::new(200)).contains(&transport.header),
            "--header: found {}, expected 20 to 200 B",
            transport.header
        );
        let segment = transport.mtu.saturating_sub(transport.header);
        ensure!(
            transport.receive_window >= segment,
            "--receive-window: found {}, expected a segment of {} B at least",
            transport.receive_window,
            segment.get()
        );
        ensure!(
            transport.certificate <= LARGEST_CERTIFICATE,
            "--certificate: found {}, expected {LARGEST_CERTIFICATE} at most",
            transport.certificate
        );
        let is_early = transport.handshakes == 0;
        ensure!(
            !is_early || transport.certificate.is_zero(),
            "--certificate: found {}, expected 0 B with --handshakes 0: a resumed session sends none",
            transport.certificate
        );
        let mut notes = vec![];
        let carrier = carriers.find(run.environment, transport.transport)?;
        for name in run.schemes() {
            carrier.check_scheme(name.0, &transport)?;
            if let Some((server, reason)) = run.server.and_then(|it| Some((it, name.0.refusal(it)?))) {
                let server = name_of(SERVERS, &server);
                bail!("--schemes: found {}, expected one that --for {server} can run: {reason}", name.0.name);
            }
        }
        notes.extend(carrier.note().map(str::to_owned));
        let sizes = sizes(&workload)?;
        let mut pages = workload.pages.map_or_else(Vec::new, crate::workload::web::front_pages::draw);
        let given = workload.fetch.map(|FetchName(fetch)| fetch);
        let mut fetches = vec![];
        for file in &workload.har {
            let page = har::read(file, workload.page.as_deref())?;
            let found = if page.is_multiplexed { Fetch::Multiplexed } else { BROWSERS };
            fetches.push(given.unwrap_or(found));
            let bytes: Bytes = page.objects.iter().map(|object| object.bytes).sum();
            let skipped: Vec<String> =
                page.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let count =
                |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
            let mut note = format!("{}: {}, {bytes}", file.display(), count(page.objects.len(), "object"));
            if let (place, all @ 2..) = page.place {
                note += &format!(" of page {place} of {all} (--page)");
            }
            let redirects = page.objects.iter().filter(|object| object.leads).count();
            if redirects > 0 {
                note += &format!("; {} cost their round trips", count(redirects, "redirect"));
            }
            if page.guessed > 0 {
                let sizes = count(page.guessed as usize, "size");
                note += &format!("; {sizes} guessed, for the file does not say what was sent");
            }
            if given.is_none() && page.is_multiplexed {
                note += "; multiplexed, for it came over HTTP/2 or 3 (--fetch)";
            }
            if !skipped.is_empty() {
                note += &format!("; left out: {}", skipped.join(", "));
            }
            if page.document_skipped.is_some() {
                note += "; the document itself is among those: save the page with an empty cache";
            }
            notes.push(note);
            pages.push(page.objects);
        }
        if workload.answers > 1 && pages.is_empty() {
            let SizeName::Fixed(bytes) = workload.size else {
                bail!("--answers: found {}, expected 1 with a distribution of sizes", workload.answers);
            };
            pages.push(vec![Object { bytes, ..Object::default() }]);
            fetches.push(given.unwrap_or(Fetch::Multiplexed));
        }
        if let (Some(file), None) = (&path.trace, path.trace_offset) {
            notes.push(format!(
                "each seed begins at another place of {}, and load is a share of what it carries from there on while flows arrive; \
                 --trace-offset 0s begins at its beginning",
                file.name
            ));
        }
        if transport.acks == AckName::Delayed && transport.min_rto <= Span::from_millis(200) {
            notes.push(
                "acks are delayed by up to 200 ms and the retransmission timeout may be as short: some timeouts are \
                 spurious; --min-rto 300ms avoids them"
                    .to_owned(),
            );
        }
        fetches.extend(fetches.is_empty().then_some(given.unwrap_or(BROWSERS)));
        let mut setup = Self { path, transport, workload, run, pages, fetches, notes, carrier, sizes };
        ensure!(
            !is_early || setup.opener() == Opener::Receiver || !setup.pages.is_empty(),
            "--handshakes: found 0, expected 1 at least where the sender opens: --opener receiver has a request"
        );
        let copies = |name: &SchemeName| name.0.scheme().repair().is_active();
        if setup.transport.as_quic && setup.run.schemes().iter().any(copies) {
            let note = "--as-quic: schemes that send copies take less time than over the QUIC stack at high load \
                        (docs/records/quic-under-load.md)";
            setup.notes.push(note.to_owned());
        }
        setup.load_of_arrivals()?;
        carrier.check(&setup)?;
        let limits = setup.limits();
        setup.notes.extend(limits);
        Ok(setup)
    }

    /// The load that a file of arrivals makes.
    fn load_of_arrivals(&mut self) -> Result<()> {
        let Some(file) = &self.workload.arrivals else { return Ok(()) };
        let (count, bytes) = count_arrivals(file, self.run.duration);
        ensure!(
            count > 0,
            "--arrivals: found no flow of {} before the end of --duration {}, expected one at least",
            file.name,
            self.run.duration
        );
        let left = file.arrivals.len() - count;
        if left > 0 {
            self.notes.push(format!(
                "{}: {left} of {} flows begin after --duration {} and are left out",
                file.name,
                file.arrivals.len(),
                self.run.duration
            ));
        }
        let capacity = (self.bottleneck() * self.run.duration).get().max(1);
        let millionths = u128::from(bytes) * 1_000_000 / u128::from(capacity);
        ensure!(
            millionths <= 5_000_000,
            "--arrivals: found {} bytes in {}, {} % of what the bottleneck carries, expected 500 % at most",
            bytes,
            self.run.duration,
            millionths / 10_000
        );
        self.workload.load = Ratio::new(millionths as u32, 1_000_000);
        if let Some(trace) = &self.path.trace {
            self.notes.push(format!(
                "{}: the load, {}, is its share of the mean rate of all of {}; each run has its own seconds of that trace",
                file.name, self.workload.load, trace.name
            ));
        }
        Ok(())
    }

    /// The setup over another path.
    ///
    /// # Errors
    /// If no such path exists.
    pub fn with_path(&self, path: PathOptions) -> Result<Self> {
        path.plan(&UpOptions::default())?;
        let setup = Self { path, ..self.clone() };
        self.carrier.check(&setup)?;
        Ok(setup)
    }

    /// Carrier of its runs.
    #[must_use]
    pub const fn carrier(&self) -> &'static dyn Carrier {
        self.carrier
    }

    /// Rate of the bottleneck; for a trace, its mean.
    #[must_use]
    pub fn bottleneck(&self) -> Rate {
        self.path.trace.as_ref().map_or(self.path.rate, |file| file.trace.mean_rate())
    }

    /// The path of a run with this seed. The offset in its traces is drawn, the same for all
    /// schemes, unless an option sets it.
    #[must_use]
    pub fn path_for(&self, seed: Seed) -> PathOptions {
        let mut path = self.path.clone();
        let trace = path.trace.as_ref().or(path.up_trace.as_ref()).map(|file| file.trace.period());
        let period = trace.or(path.delay_trace.as_ref().map(DelayFile::period));
        if let (Some(period), None) = (period, path.trace_offset) {
            let millis = period.as_nanos() / 1_000_000;
            let offset = Random::named(seed, "trace offset").below(millis.max(1));
            path.trace_offset = Some(Span::from_millis(offset));
        }
        path
    }

    /// Bytes the bottleneck can carry in the first `time` of a run with this seed, with headers.
    #[must_use]
    pub fn capacity(&self, seed: Seed, time: Span) -> Bytes {
        let path = self.path_for(seed);
        match &path.trace {
            None => path.rate * time,
            Some(file) => file.trace.beginning_at(path.trace_offset.unwrap_or_default()).bytes_in(time),
        }
    }

    /// Offered payload at this load: for a trace the load is a share of its capacity while the
    /// run's flows arrive.
    #[must_use]
    pub fn offered(&self, load: Ratio, seed: Seed) -> Rate {
        let rate = match self.path.trace {
            None => self.path.rate,
            Some(_) => self.capacity(seed, self.run.duration) / self.run.duration,
        };
        rate * load
    }

    /// The smallest round-trip time of the classes.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.path.rtt.0.iter().copied().min().unwrap_or(Span::ZERO)
    }

    /// Mean payload of a flow, or of a page.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        if let Some(file) = &self.workload.arrivals {
            let (count, bytes) = count_arrivals(file, self.run.duration);
            return bytes as f64 / (count as f64).max(1.0);
        }
        if self.pages.is_empty() {
            return self.sizes.mean();
        }
        let bytes: Bytes = self.pages.iter().flatten().map(|object| object.bytes).sum();
        bytes.get() as f64 / self.pages.len() as f64
    }

    /// The runs are of the TCP model, and not of a real stack.
    pub(crate) fn is_tcp_model(&self) -> bool {
        self.carrier().selection() == (Environment::Simulator, TransportName::Tcp)
    }

    /// The TCP model's settings.
    #[must_use]
    pub fn tcp(&self) -> TcpConfig {
        use headstart_sim::tcp::{Detection, ReceiveGrowth};
        let options = &self.transport;
        let as_quic = options.as_quic;
        let TcpConfig { header, syn, .. } = TcpConfig::default();
        // Real stacks have headers of their own.
        let header = if self.is_tcp_model() { options.header } else { header };
        TcpConfig {
            mss: options.mtu.saturating_sub(header),
            header,
            syn: if as_quic { SMALLEST_INITIAL } else { syn },
            receive_window: options.receive_window,
            receive_growth: match options.receive_growth {
                ReceiveGrowth::Fixed if as_quic => ReceiveGrowth::Eighths,
                growth => growth,
            },
            detection: match options.detection {
                DetectionName::Rack => Detection::Rack,
                DetectionName::Rfc6675 | DetectionName::Rfc6675Copies => Detection::Rfc6675,
                DetectionName::Udt => Detection::Udt,
            },
            copies_count: options.detection == DetectionName::Rfc6675Copies,
            rescue: !options.no_rescue,
            handshakes: options.handshakes,
            certificate: options.certificate,
            probe: if as_quic { Probe::Quic } else { options.probe },
            prr: !(options.no_prr || as_quic),
            recovery_period: options.recovery_period || as_quic,
            idle_restart: !(options.no_idle_restart || as_quic),
            idle_decay: options.idle_decay || options.as_linux,
            pipe_ack: options.pipe_ack,
            rate_limited_increase: options.rate_limited_increase,
            window_validation: !options.no_window_validation,
            prr_slow_start: options.prr_slow_start,
            as_linux: options.as_linux,
            delayed_ack: self.delayed_ack(),
            min_rto: options.min_rto,
            initial_rto: options.initial_rto,
            pacing: if as_quic { Pacing::Quic } else { options.pacing },
            quantum: options.quantum,
            ecn: options.ecn,
            records_limited: options.record_limited,
            several_responses: self.has_several_answers() && options.later_responses == LaterName::Flights,
            ..TcpConfig::default()
        }
    }

    /// True if connections carry several answers: pages over persistent connections.
    #[must_use]
    pub fn has_several_answers(&self) -> bool {
        !self.pages.is_empty() && self.fetches.iter().any(|fetch| !matches!(fetch, Fetch::Parallel(_)))
    }

    fn delayed_ack(&self) -> headstart_sim::tcp::DelayedAck {
        use headstart_sim::tcp::{DelayedAck, ImmediateAck};
        let second = |millis: u64| DelayedAck {
            every: 2,
            timeout: Span::from_millis(millis),
            quick: 0,
            immediate: ImmediateAck::OutOfOrder,
            ack_on_push: false,
        };
        match self.transport.acks {
            // HANDSHAKE_DONE has a packet of its own, so that the first of the data is the second.
            _ if self.transport.as_quic => {
                DelayedAck { quick: 1, immediate: ImmediateAck::NewGap(1), ..second(25) }
            }
            AckName::Immediate => DelayedAck::IMMEDIATE,
            AckName::Delayed => DelayedAck::SECOND,
            AckName::Quic => second(25),
            AckName::QuicGap => DelayedAck { immediate: ImmediateAck::NewGap(1), ..second(25) },
            AckName::Google => DelayedAck { immediate: ImmediateAck::NewGap(4), ..second(25) },
            AckName::Ngtcp2 => {
                let timeout = (self.rtt() / 8).min(Span::from_millis(25));
                DelayedAck { timeout, immediate: ImmediateAck::NewGap(1), ..second(25) }
            }
            AckName::Tenth => DelayedAck { every: 10, ..second(25) },
            AckName::Linux => DelayedAck { quick: 16, ..second(40) },
            AckName::Timer => DelayedAck {
                every: u32::MAX,
                timeout: headstart_sim::tcp::udt::SYNCHRONISATION,
                ..DelayedAck::IMMEDIATE
            },
            AckName::LinuxGrowing => DelayedAck { quick: LINUX_GROWING, ack_on_push: true, ..second(40) },
        }
    }

    /// Lower bound of a flow's duration on this path.
    #[must_use]
    pub fn ideal(&self) -> Ideal {
        let tcp = self.tcp();
        let half_rounds = if self.is_tcp_model() {
            // The sender's SYN, its answer, the data; a receiver opens with SYN, then request.
            let asks = u64::from(!self.pages.is_empty() || self.opener() == Opener::Receiver);
            2 * u64::from(tcp.handshakes) + 1 + asks
        } else {
            // A client's handshake, its request, the data.
            4
        };
        Ideal { rate: self.bottleneck(), half_rounds, mss: tcp.mss, header: tcp.header }
    }

    /// A run in which flows of `mix` arrive at `load`: the same seed draws the same arrivals,
    /// sizes, peers and losses for every mix.
    #[must_use]
    pub fn arrivals(&self, mix: SchemeMix, load: Ratio, seed: Seed) -> Run<'_> {
        let until = Time::ZERO + self.run.duration;
        let workload = self.build_workload(mix, load, seed, until);
        Run::new(self, mix, workload, until + self.run.drain, seed)
    }

    /// A run of one flow of the tested scheme, alone from the beginning.
    #[must_use]
    pub fn single_flow(&self, tested: &'static Entry, bytes: Bytes, seed: Seed) -> Run<'_> {
        let start = Start { group: TESTED, ..Start::new(Time::ZERO, bytes) };
        let workload = Box::new(Listed::new(vec![start], self.opener()));
        let until = Time::ZERO + self.run.duration + self.run.drain;
        Run::new(self, SchemeMix { tested, beside: None }, workload, until, seed)
    }

    /// True if long flows take part.
    #[must_use]
    pub fn has_long_flows(&self) -> bool {
        self.workload.background > 0 || self.workload.long_share.of(1_000_000) > 0
    }

    /// Side that opens connections.
    #[must_use]
    pub fn opener(&self) -> Opener {
        let usual = || if self.transport.as_quic { Opener::Receiver } else { self.carrier.opener() };
        self.workload.opener.unwrap_or_else(usual)
    }

    /// The reference of comparisons here: [`reference()`], as the transport has it, unless another
    /// was asked for.
    #[must_use]
    pub fn reference(&self) -> &'static Entry {
        self.run.reference.map_or_else(|| self.carrier.reference(&self.transport), |name| name.0)
    }

    /// The groups of a run of `mix`, in the order of [`TESTED`], [`BESIDE`], [`LONG`].
    #[must_use]
    pub fn groups(&self, mix: SchemeMix) -> Vec<Group> {
        let base = self.transport.base;
        let tcp = self.tcp();
        let hint = |factor| Hint { bandwidth: self.bottleneck() * factor, access: Access::Unknown };
        let hints = &self.workload;
        let group = |entry: &Entry| {
            let scheme = entry.scheme();
            let delayed_ack =
                if scheme.requirements().every_ack { DelayedAck::IMMEDIATE } else { tcp.delayed_ack };
            let tcp = TcpConfig { delayed_ack, ..tcp };
            let usual = if entry.needs == Needs::Hint { Ratio::ONE } else { Ratio::percent(0) };
            Group {
                base,
                hint: Some(hint(hints.hint)),
                hint_share: hints.hint_share.unwrap_or(usual),
                other_hint: hints.hint_lie.map(hint),
                history_capacity: hints.history,
                ..Group::new(scheme, tcp)
            }
        };
        let mut long = group(self.workload.long_scheme.0);
        long.tcp.receive_window = tcp.receive_window.max(self.workload.long_window);
        vec![group(mix.tested), group(mix.beside.unwrap_or(self.reference())), long]
    }

    /// The workload of a run of `mix` at `load`, with arrivals until `until`.
    #[must_use]
    pub fn build_workload(&self, mix: SchemeMix, load: Ratio, seed: Seed, until: Time) -> Box<dyn Workload> {
        let options = &self.workload;
        let groups = match mix.beside {
            None => vec![(TESTED, 1)],
            Some(_) => vec![(TESTED, 1), (BESIDE, 1)],
        };
        let payload = self.offered(load, seed);
        let long_payload = payload * options.long_share;
        let short_millionths = 1_000_000 - options.long_share.of(1_000_000).min(1_000_000) as u32;
        let payload = payload * Ratio::new(short_millionths, 1_000_000);
        let (run_seed, seed) = (seed, seed.child("workload"));
        let short: Box<dyn Workload> = if self.pages.is_empty() {
            Box::new(Arrivals::new(
                ArrivalSpec {
                    gaps: match &options.arrivals {
                        Some(file) => GapSpec::Listed(Arc::clone(&file.arrivals)),
                        None => GapSpec::Poisson(self.sizes.gap_at(payload)),
                    },
                    sizes: self.sizes.clone(),
                    until,
                    groups,
                    classes: self.path.rtt.0.len() as u16,
                    peers: options.peers,
                    opener: self.opener(),
                },
                seed,
            ))
        } else {
            let bytes: Bytes = self.pages.iter().flatten().map(|object| object.bytes).sum();
            Box::new(Pages::new(
                PageSpec {
                    pages: self.pages.clone(),
                    fetches: self.fetches.clone(),
                    gap: bytes * u64::from(options.answers) / self.pages.len() as u64 / payload,
                    until,
                    groups,
                    peers: options.peers,
                    again: (options.answers - 1, options.think),
                },
                seed,
            ))
        };
        let mut parts = vec![short];
        if options.background > 0 {
            // More than the link can carry in the whole run, so that they never end.
            let endless =
                self.capacity(run_seed, self.run.duration + self.run.drain) * 2 + Bytes::new(1_000_000);
            let starts = (0..options.background).map(|number| Start {
                at: Time::from_millis(100 * u64::from(number)),
                group: LONG,
                class: 0,
                bytes: endless,
                size_known: false,
            });
            parts.push(Box::new(Listed::new(starts.collect(), Opener::Sender)));
        }
        if !long_payload.is_zero() {
            let sizes = headstart_sim::sizes::Sizes::Fixed(options.long_size);
            parts.push(Box::new(Arrivals::new(
                ArrivalSpec {
                    gaps: GapSpec::Poisson(sizes.gap_at(long_payload)),
                    sizes,
                    until,
                    groups: vec![(LONG, 1)],
                    classes: self.path.rtt.0.len() as u16,
                    peers: options.peers,
                    opener: self.opener(),
                },
                seed.child("long"),
            )));
        }
        let header = self.tcp().header;
        if let Some(attack) = options.attack.spoof(options.attack_requests, Time::ZERO, until, header) {
            parts.push(Box::new(Spoof::new(attack, run_seed.child("attack"))));
        }
        if let Some(rate) = options.media {
            parts.push(Box::new(Media::new(rate, until)));
        }
        if parts.len() == 1 { parts.remove(0) } else { Box::new(Mixed::new(parts)) }
    }

    /// The path, with the properties that the checker verifies.
    #[must_use]
    pub fn build_path(&self, seed: Seed) -> (headstart_sim::Path, Vec<ElementModel>) {
        let plan = self.path_for(seed).unchecked_plan(&UpOptions::default());
        (headstart_sim::Path::new(&plan, seed), ElementModel::of(&plan))
    }
}

/// Number of a file's flows that arrive in that time, and their bytes.
fn count_arrivals(file: &ArrivalFile, duration: Span) -> (usize, u64) {
    let until = Time::ZERO + duration;
    let count = file.arrivals.partition_point(|(at, _)| *at < until);
    (count, file.arrivals[..count].iter().map(|(_, bytes)| bytes.get()).sum())
}

/// The reference scheme of every comparison.
#[must_use]
pub fn reference() -> &'static Entry {
    schemes::find(REFERENCE).unwrap_or(&schemes::all()[0])
}

fn sizes(options: &WorkloadOptions) -> Result<headstart_sim::sizes::Sizes> {
    use headstart_sim::sizes::Sizes;
    Ok(match &options.size {
        SizeName::Fixed(bytes) => Sizes::Fixed(*bytes),
        SizeName::Named(name) => match Sizes::named(name, options.cap) {
            Some(sizes) => sizes,
            None => bail!("--size: no distribution is called `{name}`"),
        },
        SizeName::File(file) => file.sizes.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headstart_net::Trace;

    use super::*;
    use crate::options::TraceFile;
    use crate::settings::Settings;

    /// Twenty seconds of 12 Mbit/s and twenty of 1.2 Mbit/s, alternating.
    fn setup(line: &str) -> Setup {
        let fast = (1..=20_000).chain((2_001..=4_000).map(|tenth| tenth * 10));
        let trace = Arc::new(Trace::from_millis(fast).expect("a trace"));
        let line = format!("--duration 10s --size 10kB --load 30% {line}");
        let mut setup = Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine");
        setup.path.trace = Some(TraceFile { name: "two halves".to_owned(), trace });
        setup
    }

    fn arrivals(setup: &Setup, seed: Seed) -> u64 {
        let mix = SchemeMix { tested: reference(), beside: None };
        let mut workload =
            setup.build_workload(mix, setup.workload.load, seed, Time::ZERO + setup.run.duration);
        let mut orders = vec![];
        while workload.next_at() != Time::NEVER {
            workload.on_time(workload.next_at(), &mut orders);
        }
        orders.len() as u64
    }

    #[test]
    fn load_is_a_share_of_the_capacity_during_the_run() {
        // 1.5 MB/s and 150 kB/s, of which 30 % in flows of 10 kB for ten seconds.
        for (offset, expected) in [("0s", 450), ("5s", 450), ("25s", 45), ("15s", 247), ("35s", 247)] {
            let found = arrivals(&setup(&format!("--trace-offset {offset}")), Seed(1));
            assert!(found.abs_diff(expected) * 3 < expected, "{offset}: {found} flows, expected {expected}");
        }
    }

    #[test]
    fn each_seed_has_its_own_trace_offset_unless_one_is_given() {
        let offsets = |setup: &Setup| -> Vec<Option<Span>> {
            (1..=50).map(|seed| setup.path_for(Seed(seed)).trace_offset).collect()
        };
        let drawn = offsets(&setup(""));
        let early = drawn.iter().filter(|offset| offset.is_some_and(|at| at < Span::from_secs(20))).count();
        assert!((15..35).contains(&early), "{early} of 50 in the first half");
        assert_eq!(drawn, offsets(&setup("--schemes iw2 --peers 3")), "the same for all schemes");
        let given = Some(Span::from_secs(7));
        assert!(offsets(&setup("--trace-offset 7s")).iter().all(|offset| *offset == given));
    }

    #[test]
    fn without_a_trace_the_load_is_that_of_the_rate() {
        let setup = Settings::parse(Carriers::MODEL, ["--load", "20%"].into_iter()).expect("fine");
        assert_eq!(setup.offered(setup.workload.load, Seed(1)), Rate::from_mbit_per_sec(3));
        assert_eq!(setup.capacity(Seed(1), Span::from_secs(8)), Bytes::new(15_000_000));
        assert_eq!(setup.path_for(Seed(1)).trace_offset, None);
    }
}

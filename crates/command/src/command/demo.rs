//! `headstart demo`: server, client and path in one process, and the times of each scheme.
//!
//! Only the path is simulated: UDP datagrams of a real QUIC stack cross the elements of the
//! simulator by the real clock.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use headstart_emu::clock::Clock;
use headstart_emu::relay::{self, Handle};
use headstart_emu::{Path, udp};
use headstart_host::locked;
use headstart_net::{Direction, PathPlan, Seed};
use headstart_quic::{Choice, ClientSetup, Sharded, StartReport};
use headstart_startup::catalogue::Needs;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Rate, Span};
use headstart_web::client::{self, ClientEndpoint, FetchPlan, Origin, Trust, Visit};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use tokio_util::sync::CancellationToken;

use super::format::Format;
use super::serve::Choices;
use super::terminal::has_styles;
use headstart_report::errors::Refuse as _;
use headstart_report::statistics::{mean, mean_interval};
use headstart_report::table::{Better, Cell, Column, Table, terminal_width};
use headstart_study::options::{Buffer, PathPreset};

/// Options of `headstart demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// A path by name; options override its numbers (`headstart list paths`: sources, buffers)
    #[arg(long = "path", value_name = "NAME")]
    pub preset: Option<PathPreset>,
    /// Rate of the access link
    #[arg(long, default_value = "25 Mbit/s", value_name = "RATE")]
    pub rate: Rate,
    /// Round-trip time
    #[arg(long, default_value = "50 ms", value_name = "TIME")]
    pub rtt: Span,
    /// Buffer of the access link: bytes, packets, time at the link's rate, or BDP
    #[arg(long, default_value = "104 packets", value_name = "SIZE")]
    pub buffer: Buffer,
    /// Size of the page
    #[arg(long, default_value = "100 kB", value_name = "SIZE")]
    pub size: Bytes,
    /// Schemes; the others are compared with the first [default: iw10, iw32, bbr and the fast
    /// starts]
    #[arg(
        long,
        hide_default_value = true,
        default_value = "iw10,iw32,bbr,rapid-start,jump-start,halfback,blitzstart,tcp-cache,s-cubic,careful-resume,wise-start",
        value_name = "NAMES"
    )]
    pub schemes: Choices,
    /// Fetches with each scheme
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=1000_u32))]
    pub repeats: u32,
    /// Size of the download that gives the server a record of its client, before schemes with a
    /// history are measured
    #[arg(long, default_value = "1 MB", value_name = "SIZE")]
    pub visit: Bytes,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Clone, Debug, Default)]
struct Row {
    times: Vec<f64>,
    saved: Vec<f64>,
    lost: u64,
    copies: u64,
}

/// Runs `headstart demo`.
///
/// # Errors
///
/// If there is no socket, or a fetch fails.
pub fn demo(args: &DemoArgs) -> Result<()> {
    check(args).or_refuse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(args))
}

/// A server that did not receive the client's close drops and reports the connection after 30 s.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

fn check(args: &DemoArgs) -> Result<()> {
    if args.rate.is_zero() {
        bail!("--rate: found {}, expected more than 0", args.rate);
    }
    for (option, size) in [("--size", args.size), ("--visit", args.visit)] {
        if size.is_zero() || size.get() > headstart_web::site::MAX_GENERATED {
            bail!("{option}: found {size}, expected 1 B to 1 GiB");
        }
    }
    if args.rtt > LONGEST_RTT {
        bail!("--rtt: found {}, expected at most {LONGEST_RTT}", args.rtt);
    }
    Ok(())
}

/// Above it a handshake takes longer than the stack's timeout.
const LONGEST_RTT: Span = Span::from_secs(5);

struct Testbed {
    relay: Handle,
    shutdown: CancellationToken,
    /// The server's start reports of the connections that ended, in order.
    reports: Arc<Mutex<Vec<StartReport>>>,
    remote: SocketAddr,
    endpoint: ClientEndpoint,
}

impl Testbed {
    fn start(args: &DemoArgs) -> Result<Self> {
        let identity = Identity::temporary()?;
        let current = identity.current()?;
        let plan = ServerSettings {
            others: args.schemes.0.clone(),
            ..ServerSettings::new(&current, args.schemes.0[0], Arc::new(Sharded::new(64)))
        };
        let (endpoint, starts) = open::open(plan, SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let reports = Arc::<Mutex<Vec<StartReport>>>::default();
        let collected = Arc::clone(&reports);
        let starts = starts.report_to(Arc::new(move |report: &StartReport| {
            locked(&collected).push(report.clone());
        }));
        let served = endpoint.local_addr()?;
        let shutdown = CancellationToken::new();
        let server_config =
            ServerConfig { scheme_choice: true, grace: Duration::ZERO, ..ServerConfig::default() };
        let site = Arc::new(Site::Generated);
        tokio::spawn(server::serve(endpoint, Arc::new(starts), site, server_config, shutdown.clone()));

        // Down is towards the client. The way back has the same rate: little data returns on it.
        let plan = PathPlan::dumbbell(args.rate, args.rtt, args.buffer.limit(args.rate, args.rtt));
        let [up, down] = Direction::BOTH.map(|direction| Path::of(&plan, direction, Seed(1)));
        let (address, relay) = udp::start(
            udp::Settings::before(served),
            up,
            down,
            Clock::start(),
            relay::Settings::default(),
            None,
        )
        .context("cannot open a UDP port for the path")?;
        Ok(Self { relay, shutdown, reports, remote: address, endpoint: ClientEndpoint::to(address)? })
    }

    /// Fetches `size` bytes; waits until the server has reported it and the path is empty.
    async fn fetch(&self, setup: &ClientSetup, scheme: &str, size: Bytes) -> Result<(Visit, StartReport)> {
        let before = self.report_count();
        let url: http::Uri =
            format!("https://localhost:{}/bytes/{}", self.remote.port(), size.get()).parse()?;
        let plan = FetchPlan {
            origin: Origin::of(&url)?,
            urls: vec![url],
            keep: false,
            timeout: Duration::from_secs(60),
        };
        let (config, _) = setup.configure(self.remote, "localhost");
        let visit = plan.run(&self.endpoint, config, self.remote).await?;
        if visit.pages.iter().any(|page| page.bytes != size.get() || page.scheme.as_deref() != Some(scheme)) {
            bail!("asked for {size} by {scheme}, and got {:?}", visit.pages);
        }
        tokio::time::sleep(visit.rtt * 3).await;
        let reported = async {
            while self.report_count() <= before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // A report of another connection must not be taken for this one's.
        tokio::time::timeout(REPORT_TIMEOUT, reported)
            .await
            .context("the server did not report the connection")?;
        let reports = locked(&self.reports);
        let report = reports.get(before).cloned().context("the server did not report the connection")?;
        Ok((visit, report))
    }

    fn report_count(&self) -> usize {
        locked(&self.reports).len()
    }
}

async fn run(args: &DemoArgs) -> Result<()> {
    let testbed = Testbed::start(args)?;
    let mut screen = LiveTable::default();
    if args.format == Format::Table {
        println!(
            "A page of {} from a server on this machine, through a link of {}, {} round trip, {} of buffer. Real QUIC, real time.\n",
            args.size,
            args.rate,
            args.rtt,
            buffer_words(args.buffer, args.rate, args.rtt)
        );
    }
    let mut setups = vec![];
    for scheme in &args.schemes.0 {
        let tls = client::tls(&Trust::AnyCertificate, Some(scheme.name()), false)?;
        let mut setup = ClientSetup::new(Arc::new(tls))?;
        if scheme.needs() == Needs::Hint {
            // The best possible estimate on this link.
            setup = setup.hint(Hint { bandwidth: args.rate, access: Access::Unknown });
        }
        setups.push((*scheme, setup));
    }
    let mut rows = BTreeMap::<&str, Row>::new();
    for (scheme, setup) in &setups {
        screen.show(args, &rows, &format!("{} gets to know its client ...", scheme.name()));
        if scheme.needs() == Needs::History {
            testbed.fetch(setup, scheme.name(), args.visit).await?;
        }
    }
    for round in 0..args.repeats {
        for (scheme, setup) in &setups {
            screen.show(
                args,
                &rows,
                &format!("round {} of {}: {} ...", round + 1, args.repeats, scheme.name()),
            );
            let (visit, report) = testbed.fetch(setup, scheme.name(), args.size).await?;
            let row = rows.entry(scheme.name()).or_default();
            row.times.push(visit.complete().as_secs_f64() * 1000.0);
            row.saved.push(f64::from(report.rounds_saved()));
            row.lost += report.tally.lost.get();
            row.copies += report.tally.copies;
        }
    }
    testbed.shutdown.cancel();
    let summary = testbed.relay.stop().context("the path")?;
    screen.clear();
    let mut table = table(args, &rows);
    if !summary.is_valid {
        table.note(
            "This machine was too busy to keep real time: the path was late. Try again when it is quiet.",
        );
    }
    args.format.print_table(&table)
}

/// The buffer of a link in words.
pub(super) fn buffer_words(buffer: Buffer, rate: Rate, rtt: Span) -> String {
    let limit = buffer.limit(rate, rtt);
    if limit.packets == u64::MAX { limit.bytes.to_string() } else { format!("{} packets", limit.packets) }
}

fn width() -> usize {
    terminal_width(std::env::var("COLUMNS").ok().as_deref())
}

/// Payload of a full packet before the path's MTU is determined, and that packet's size on the link
/// (QUIC, UDP and IPv4 headers).
const PAYLOAD: u64 = 1163;
const PACKET_BYTES: u64 = 1228;

/// Lower bound of a fetch: handshake, another round trip, and the bytes at the link's rate.
fn ideal_ms(args: &DemoArgs) -> f64 {
    let on_link = Bytes::new(args.size.get().div_ceil(PAYLOAD) * PACKET_BYTES);
    (args.rtt * 2).as_millis_f64() + (on_link / args.rate).as_millis_f64()
}

fn table(args: &DemoArgs, rows: &BTreeMap<&str, Row>) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::text("scheme"),
            Column::text("knows").priority(6),
            Column::number("complete", "ms").better(Better::Lower),
            Column::number("against cold", "%").priority(9),
            Column::number("above ideal", "%").priority(8),
            Column::number("round trips saved", "").priority(7),
            Column::number("lost", "kB").priority(5),
            Column::number("copies", "").priority(4),
        ],
    );
    let ideal = ideal_ms(args);
    let average = |name: &str| rows.get(name).and_then(|row| mean(&row.times));
    let base = average(args.schemes.0[0].name());
    for scheme in &args.schemes.0 {
        let Some(row) = rows.get(scheme.name()) else {
            table.row([Cell::text(scheme.name()), Cell::text(known_inputs(scheme))]);
            continue;
        };
        let complete = average(scheme.name()).unwrap_or(f64::NAN);
        let shown = Cell::number(complete, 0);
        table.row([
            Cell::text(scheme.name()),
            Cell::text(known_inputs(scheme)),
            match mean_interval(&row.times) {
                Some(interval) => shown.with_interval(interval.low, interval.high),
                None => shown,
            },
            base.map_or(Cell::Missing, |base| Cell::number((complete / base - 1.0) * 100.0, 0)),
            Cell::number((complete / ideal - 1.0) * 100.0, 0),
            mean(&row.saved).map_or(Cell::Missing, |saved| Cell::number(saved, 1)),
            Cell::number(row.lost as f64 / 1000.0, 1),
            Cell::count(row.copies),
        ]);
    }
    table.note(&format!(
        "Ideal: {ideal:.0} ms, two round trips and the bytes at the link's rate. Measured at the client from its first packet to the last byte, \
         handshake and all; mean of {} with its 95 % interval. Losses and copies of all.",
        args.repeats
    ));
    table
}

fn known_inputs(scheme: &Choice) -> &'static str {
    match scheme.needs() {
        Needs::Nothing => "nothing",
        Needs::FlowSize => "size of the page",
        Needs::History => "an earlier visit",
        Needs::Hint => "the client's hint",
        Needs::Routers => "routers",
    }
}

/// A table that is drawn over itself, where there is a terminal.
#[derive(Default)]
struct LiveTable {
    lines: usize,
}

impl LiveTable {
    fn show(&mut self, args: &DemoArgs, rows: &BTreeMap<&str, Row>, under_way: &str) {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if args.format != Format::Table || !std::io::stdout().is_terminal() || is_dumb {
            return;
        }
        self.clear();
        let text = format!("{}\n{under_way}\n", table(args, rows).terminal(width(), has_styles()));
        self.lines = text.lines().count();
        print!("{text}");
        // A closed terminal is reported when the result is printed.
        let _ = std::io::stdout().flush();
    }

    fn clear(&mut self) {
        if self.lines > 0 {
            print!("\x1b[{}A\x1b[J", self.lines);
            self.lines = 0;
        }
    }
}

//! `headstart history`: the records of a file or of a fleet's server.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use headstart_host::unix_now;
use headstart_startup::history::{FlightOutcome, Network, Networks, Record};
use headstart_store::error::Reason;
use headstart_store::file::MAX_SLOTS;
use headstart_store::fleet::{self, Remote};
use headstart_store::{Error, History, Loaded, Options};
use headstart_units::{Bytes, Rate, Span, Time};
use serde::Serialize;

use super::serve::{HistoryLocation, read_networks};
use super::terminal::{print, print_table};
use headstart_report::errors::Refuse as _;
use headstart_report::table::{Cell, Column, Table};

/// Options of `headstart history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Number of peers, ages, rates and round-trip times
    Show {
        /// File, or valkey://HOST:PORT/
        #[arg(value_name = "FILE|URL")]
        store: HistoryLocation,
    },
    /// Every record, the newest first
    Export {
        /// File, or valkey://HOST:PORT/
        #[arg(value_name = "FILE|URL")]
        store: HistoryLocation,
        /// Output format
        #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
        format: ExportFormat,
    },
    /// Copy records into another store: the newest of each peer stays
    Merge {
        /// Files, or valkey://HOST:PORT/; they stay as they are
        #[arg(value_name = "FILE|URL", required = true)]
        from: Vec<HistoryLocation>,
        /// The store that gets them; a file is made if there is none
        #[arg(long, value_name = "FILE|URL")]
        into: HistoryLocation,
    },
    /// Networks of several peers (IPv4 /24, IPv6 /48): rates, and the initial window that holds on
    /// three of four of their paths
    ///
    /// With --routes as commands, for fleets that load nothing into their kernel: all connections
    /// to these networks then begin with that window. Addresses of peers are not
    /// printed.
    Prefixes {
        /// File, or valkey://HOST:PORT/
        #[arg(value_name = "FILE|URL")]
        store: HistoryLocation,
        /// Fewest peers of a network that is printed: numbers of fewer would identify people
        #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=1_000_000_usize))]
        least: usize,
        /// File with networks of one's own in place of /24 and /48, one to a line as in
        /// `203.0.113.0/25`. A peer counts for the longest that has it; those outside of all are
        /// left out
        #[arg(long, value_name = "FILE")]
        networks: Option<PathBuf>,
        /// Print a route for each network, with these words for the way to it, such as `via
        /// 192.0.2.1 dev eth0`
        #[arg(long, value_name = "WORDS")]
        routes: Option<String>,
    },
    /// Remove old records
    Prune {
        /// File, or valkey://HOST:PORT/
        #[arg(value_name = "FILE|URL")]
        store: HistoryLocation,
        /// Age of the newest record that is removed
        #[arg(long, value_name = "TIME")]
        older_than: Span,
    },
}

/// Output format of an export.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// One line for each record, with a header
    Csv,
    /// A list of objects
    Json,
}

/// Time for an answer of a fleet's server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Use of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Change,
    /// To change it, and to make a file if there is none.
    Make,
}

/// Opens a copy of a file that a server writes meanwhile: each record has a checksum. The copy is
/// gone when it is closed.
fn open_copy(file: &Path, options: Options) -> Result<std::result::Result<(History, Loaded), Error>> {
    let name = format!("headstart-history-{}-{}", std::process::id(), unix_now().as_nanos());
    let copy = std::env::temp_dir().join(name);
    let make = || {
        let mut to = std::fs::OpenOptions::new().write(true).create_new(true).open(&copy)?;
        std::io::copy(&mut std::fs::File::open(file)?, &mut to)
    };
    let opened = make().map(|_| History::open(&copy, options));
    let _ = std::fs::remove_file(&copy);
    opened.with_context(|| format!("cannot copy it to {}", copy.display()))
}

enum OpenStore {
    File(History),
    Server(Box<Remote>),
}

impl OpenStore {
    /// Opens a store; a file that is not there is made only to be written. A file that cannot be
    /// used is refused, a server that does not answer is a failure.
    fn open(place: &HistoryLocation, access: Access) -> Result<Self> {
        match place {
            HistoryLocation::File(file) => Self::open_file(file, access).or_refuse(),
            HistoryLocation::Fleet(address) => Ok(Self::Server(Box::new(Remote::connect(address, TIMEOUT)?))),
        }
    }

    fn open_file(file: &Path, access: Access) -> Result<Self> {
        if access != Access::Make && !file.exists() {
            bail!("history file {}: found none, expected one of `headstart serve --history`", file.display());
        }
        let options = Options { capacity: MAX_SLOTS, ..Options::default() };
        let opened = match History::open(file, options) {
            Err(error) if access == Access::Read && matches!(error.reason, Reason::InUse) => {
                open_copy(file, options)?
            }
            opened => opened,
        };
        let (history, loaded) = opened?;
        if let Some(notice) = loaded.notice() {
            eprintln!("headstart: {}: {notice}", file.display());
        }
        Ok(Self::File(history))
    }

    /// Records of the store, the newest first.
    fn records(&mut self) -> Result<Vec<(IpAddr, Record)>> {
        let mut records = match self {
            Self::File(history) => history.records(),
            Self::Server(remote) => {
                let mut found = vec![];
                let damaged = remote.records(&mut |peer, record| found.push((peer, record)))?;
                if damaged > 0 {
                    eprintln!("headstart: {damaged} invalid records were skipped");
                }
                found
            }
        };
        records.sort_unstable_by_key(|(peer, record)| (std::cmp::Reverse(record.saved_at), *peer));
        // A server may name a key twice.
        records.dedup_by_key(|(peer, _)| *peer);
        Ok(records)
    }

    fn put(&mut self, records: &[(IpAddr, Record)]) -> Result<()> {
        match self {
            Self::File(history) => {
                for (peer, record) in records {
                    history.restore(*peer, *record);
                }
                history.flush().context("cannot write the file")
            }
            Self::Server(remote) => Ok(remote.put(records, fleet::Options::default().lifetime)?),
        }
    }

    fn remove(&mut self, records: &[(IpAddr, Record)]) -> Result<()> {
        match self {
            Self::File(history) => {
                for (peer, _) in records {
                    history.remove(*peer);
                }
                history.flush().context("cannot write the file")
            }
            Self::Server(remote) => Ok(remote.remove(records)?),
        }
    }
}

/// Runs `headstart history`.
///
/// # Errors
/// If a store cannot be read or written.
pub fn run(args: &HistoryArgs) -> Result<()> {
    match &args.action {
        Action::Show { store } => print_table(&summary(&OpenStore::open(store, Access::Read)?.records()?)),
        Action::Export { store, format } => {
            export(&OpenStore::open(store, Access::Read)?.records()?, *format)
        }
        Action::Prefixes { store, least, networks: own, routes } => {
            if let Some(words) = routes.as_ref().filter(|words| words.contains(|it: char| it.is_control())) {
                return Err(anyhow!("--routes: found {words:?}, expected words of one line")).or_refuse();
            }
            let own = own.as_deref().map(read_networks).transpose().or_refuse()?;
            let records = OpenStore::open(store, Access::Read)?.records()?;
            let networks = networks(&records, *least, &own.unwrap_or_default());
            match routes {
                None => print_table(&prefixes(&networks, *least)),
                Some(words) => {
                    print(&networks.iter().map(|network| network.route(words)).collect::<String>())
                }
            }
        }
        Action::Merge { from, into } => {
            // Read and closed before the target is opened, which may be one of them.
            let sources: Result<Vec<_>> =
                from.iter().map(|place| OpenStore::open(place, Access::Read)?.records()).collect();
            let sources = sources?;
            let mut target = OpenStore::open(into, Access::Make)?;
            for (place, records) in from.iter().zip(sources) {
                target.put(&records)?;
                eprintln!("headstart: {} records of {place}", records.len());
            }
            Ok(())
        }
        Action::Prune { store, older_than } => {
            let mut store = OpenStore::open(store, Access::Change)?;
            let now = unix_now();
            let mut old = store.records()?;
            let all = old.len();
            old.retain(|(_, record)| record.is_expired(now, *older_than));
            store.remove(&old)?;
            print(&format!("{} of {all} records removed\n", old.len()))
        }
    }
}

/// A record as a row; units in the names.
#[derive(Serialize)]
struct Row {
    peer: IpAddr,
    /// Since 1970.
    saved_at_s: f64,
    age_s: f64,
    rate_bits_per_s: u64,
    min_rtt_ms: f64,
    window_bytes: u64,
    /// None where no threshold was set.
    ssthresh_bytes: Option<u64>,
    ended: &'static str,
    credit_bytes: u64,
    handshake_excess_ms: f64,
}

impl Row {
    fn new(peer: IpAddr, record: &Record, now: Time) -> Self {
        Self {
            peer,
            saved_at_s: record.saved_at.since(Time::ZERO).as_secs_f64(),
            age_s: now.since(record.saved_at).as_secs_f64(),
            rate_bits_per_s: record.btl_bw.as_bits_per_sec(),
            min_rtt_ms: record.rt_prop.as_millis_f64(),
            window_bytes: record.window.get(),
            ssthresh_bytes: (record.ssthresh != Bytes::MAX).then(|| record.ssthresh.get()),
            ended: match record.outcome {
                FlightOutcome::Clean => "clean",
                FlightOutcome::Lossy => "lossy",
            },
            credit_bytes: record.credit.get(),
            handshake_excess_ms: record.handshake_excess.as_millis_f64(),
        }
    }
}

fn export(records: &[(IpAddr, Record)], format: ExportFormat) -> Result<()> {
    let now = unix_now();
    let rows: Vec<Row> = records.iter().map(|(peer, record)| Row::new(*peer, record, now)).collect();
    match format {
        ExportFormat::Json => print(&(serde_json::to_string_pretty(&rows)? + "\n")),
        ExportFormat::Csv => {
            let mut writer = csv::Writer::from_writer(vec![]);
            for row in &rows {
                writer.serialize(row)?;
            }
            print(&String::from_utf8(writer.into_inner()?)?)
        }
    }
}

/// Peers of one network.
struct NetworkSummary {
    network: Network,
    peers: usize,
    rate: Rate,
    rtt: Span,
    /// Segments that the paths of three of four peers hold.
    window: u64,
}

/// Payload of a segment in the windows of routes.
const SEGMENT: Bytes = Bytes::new(1448);
/// A window of a route is not below the kernel's own, nor above this.
const WINDOWS: (u64, u64) = (10, 100);

impl NetworkSummary {
    fn new(network: Network, records: &[Record]) -> Self {
        fn sorted<T: Ord>(records: &[Record], of: impl Fn(&Record) -> T) -> Vec<T> {
            let mut all: Vec<T> = records.iter().map(of).collect();
            all.sort();
            all
        }
        let quarter = sorted(records, |it| it.bdp().unwrap_or_default()).swap_remove(records.len() / 4);
        Self {
            network,
            peers: records.len(),
            rate: sorted(records, |it| it.btl_bw).swap_remove(records.len() / 2),
            rtt: sorted(records, |it| it.rt_prop).swap_remove(records.len() / 2),
            window: (quarter.get() / SEGMENT.get()).clamp(WINDOWS.0, WINDOWS.1),
        }
    }

    fn route(&self, words: &str) -> String {
        let space = if words.is_empty() { "" } else { " " };
        format!("ip route replace {}{space}{words} initcwnd {}\n", self.network, self.window)
    }
}

/// Networks with so many measured peers, the one with most of them first.
fn networks(records: &[(IpAddr, Record)], least: usize, division: &Networks) -> Vec<NetworkSummary> {
    let mut by_network: BTreeMap<Network, Vec<Record>> = BTreeMap::new();
    for (peer, record) in records.iter().filter(|(_, record)| record.bdp().is_some()) {
        if let Some(network) = division.find(peer.to_canonical()) {
            by_network.entry(network).or_default().push(*record);
        }
    }
    by_network.retain(|_, records| records.len() >= least);
    let summaries = by_network.into_iter().map(|(network, records)| NetworkSummary::new(network, &records));
    let mut networks: Vec<NetworkSummary> = summaries.collect();
    networks.sort_by_key(|network| Reverse(network.peers));
    networks
}

fn prefixes(networks: &[NetworkSummary], least: usize) -> Table {
    let columns = [
        Column::text("network"),
        Column::number("peers", ""),
        Column::number("rate, median", "Mbit/s"),
        Column::number("RTT, median", "ms"),
        Column::number("initial window", "segments"),
    ];
    let mut table = Table::new(&format!("Networks of {least} peers or more"), columns);
    for network in networks {
        table.row([
            Cell::text(&network.network.to_string()),
            Cell::number(network.peers as f64, 0),
            Cell::number(network.rate.as_bits_per_sec() as f64 / 1e6, 1),
            Cell::number(network.rtt.as_millis_f64(), 1),
            Cell::number(network.window as f64, 0),
        ]);
    }
    table.note("The window holds on three of four peers' paths: 10 to 100 segments.");
    table
}

fn summary(records: &[(IpAddr, Record)]) -> Table {
    let now = unix_now();
    let title = headstart_show::counted(records.len() as u64, "peer");
    let columns = ["least", "10 %", "median", "90 %", "largest"].map(|title| Column::number(title, ""));
    let mut table = Table::new(&title, [Column::text("")].into_iter().chain(columns));
    let rows: Vec<Row> = records.iter().map(|(peer, record)| Row::new(*peer, record, now)).collect();
    let mut line = |name: &str, decimals, value: &dyn Fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: usize| values.get((values.len().saturating_sub(1)) * share / 100).copied();
        let cells = [0, 10, 50, 90, 100].map(|share| match at(share) {
            Some(value) => Cell::number(value, decimals),
            None => Cell::text("-"),
        });
        table.row([Cell::text(name)].into_iter().chain(cells));
    };
    line("age (s)", 0, &|row| row.age_s);
    line("rate (Mbit/s)", 1, &|row| row.rate_bits_per_s as f64 / 1e6);
    line("RTT (ms)", 1, &|row| row.min_rtt_ms);
    let lossy = rows.iter().filter(|row| row.ended == "lossy").count();
    table.note(&format!("{lossy} of them are of starts that lost packets."));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_window_of_three_of_four_paths_and_no_peers_address() {
        let record = |mbit: u64, millis: u64| Record {
            btl_bw: Rate::from_mbit_per_sec(mbit),
            rt_prop: Span::from_millis(millis),
            ..Record::default()
        };
        let peer = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut records: Vec<(IpAddr, Record)> =
            (1..=8).map(|host| (peer(&format!("192.0.2.{host}")), record(host * 2, 58))).collect();
        records.extend((1..=9).map(|site| (peer(&format!("2001:db8:7:{site}::")), record(1000, 100))));
        records.push((peer("2001:db8:8::"), record(9, 9)));
        records.push((peer("192.0.2.77"), Record::default()));
        let found = networks(&records, 8, &Networks::default());
        let lines: Vec<String> = found.iter().map(|network| network.route("via 198.51.100.1")).collect();
        assert_eq!(
            lines,
            [
                "ip route replace 2001:db8:7::/48 via 198.51.100.1 initcwnd 100\n",
                // 6 Mbit/s over 58 ms is 30 segments.
                "ip route replace 192.0.2.0/24 via 198.51.100.1 initcwnd 30\n",
            ]
        );
        assert_eq!(found[1].route(""), "ip route replace 192.0.2.0/24 initcwnd 30\n");
        assert_eq!((found[1].peers, found[1].rate), (8, Rate::from_mbit_per_sec(10)));
        assert!(networks(&records, 10, &Networks::default()).is_empty());
    }
}

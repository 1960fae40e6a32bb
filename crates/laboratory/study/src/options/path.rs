//! From options to a path.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use headstart_net::delay::NonCapableRouter;
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, LinkPlan, LinkRate, PathPlan, PlanError, QueueDiscipline, burst_loss};
use headstart_units::{Rate, Ratio, Span};

use super::{Buffer, Burst, PathOptions, RouterName, TraceFile, discipline};

/// The reverse path, in addition to the options of a race.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Way back (up)")]
pub struct UpOptions {
    /// Queue discipline of the buffer on the way back
    #[arg(long, default_value = "drop-tail", value_name = "DISCIPLINE", value_parser = discipline())]
    pub up_queue: QueueDiscipline,
    /// Random loss on the way back, each packet for itself
    #[arg(long, default_value = "0 %", value_name = "SHARE")]
    pub up_loss: Ratio,
    /// Bursts of loss on the way back: share of packets that begin one, and mean length in packets,
    /// as `0.1%,5`
    #[arg(long, value_name = "SHARE,LENGTH")]
    pub up_burst_loss: Option<Burst>,
    /// Random extra delay on the way back up to this, in order
    #[arg(long, default_value = "0 ms", value_name = "TIME")]
    pub up_jitter: Span,
}

impl Default for UpOptions {
    /// A plain link.
    fn default() -> Self {
        super::defaults()
    }
}

impl PathOptions {
    /// The path of these options, checked.
    ///
    /// # Errors
    /// If no such path exists; names the option, the value found and the one expected.
    pub fn plan(&self, up: &UpOptions) -> Result<PathPlan> {
        let routing = &self.routing;
        for (name, span) in
            [("--router-interval", routing.router_interval), ("--router-memory", routing.router_memory)]
        {
            ensure!(span >= Span::from_millis(1), "{name}: found {span}, expected a millisecond at least");
        }
        ensure!(
            routing.router_assumed_rate != Some(Rate::ZERO),
            "--router-assumed-rate: found 0, expected more than 0"
        );
        for (name, file) in [("--trace", &self.trace), ("--up-trace", &self.up_trace)] {
            let is_slow = file.as_ref().is_some_and(|file| file.trace.mean_rate().is_zero());
            ensure!(!is_slow, "{name}: found a mean rate below 8 bit/s, expected that at least");
        }
        let plan = self.unchecked_plan(up);
        plan.check().map_err(|error| refusal(&error))?;
        carries_packets("", self.buffer, &plan.down)?;
        carries_packets("up-", self.up_buffer.unwrap_or(self.buffer), &plan.up)?;
        Ok(plan)
    }

    /// The path of these options, if real packets can cross it.
    ///
    /// # Errors
    /// If an option is invalid, or not available for real packets.
    pub fn plan_for_packets(&self, up: &UpOptions) -> Result<PathPlan> {
        let classes = self.rtt.0.len();
        ensure!(classes == 1, "--rtt: found {classes} times, expected one: a link has one class of hosts");
        ensure!(
            !matches!(self.routers, RouterName::Rcp | RouterName::NonCapable),
            "--routers: found {}, expected none, share, target or extreme: no real packet carries RCP's rate",
            super::choice_name(self.routers)
        );
        self.plan(up)
    }

    /// Rate of the way back: that of the way there, of a trace its mean, unless one is given.
    #[must_use]
    pub fn way_back(&self) -> Rate {
        let there = || self.trace.as_ref().map_or(self.rate, |file| file.trace.mean_rate());
        self.up_rate.unwrap_or_else(there)
    }

    /// The path of these options, which have been checked.
    #[must_use]
    pub fn unchecked_plan(&self, up: &UpOptions) -> PathPlan {
        let rtt = self.rtt.0.iter().copied().min().unwrap_or(Span::ZERO);
        let offset = self.trace_offset.unwrap_or(Span::ZERO);
        let link = |trace: Option<&TraceFile>, rate, delay, buffer: super::Buffer, discipline| {
            let begun = |file: &TraceFile| Arc::new(file.trace.beginning_at(offset));
            let rate = trace.map_or(LinkRate::Constant(rate), |file| LinkRate::Trace(begun(file)));
            let (limit, router) =
                (buffer.limit(rate.mean(), rtt), self.routing.router(self.routers, rate.mean()));
            ElementPlan::Link(LinkPlan { rate, delay, limit, discipline, router, changes: vec![] })
        };
        let mut there = vec![link(self.trace.as_ref(), self.rate, rtt / 2, self.buffer, self.queue)];
        there.splice(0..0, self.policer.map(ElementPlan::Policer));
        there.splice(0..0, self.ip_options.map(|filter| ElementPlan::OptionFilter(filter.params())));
        let (up_rate, up_buffer) = (self.way_back(), self.up_buffer.unwrap_or(self.buffer));
        let mut back = vec![link(self.up_trace.as_ref(), up_rate, rtt / 2, up_buffer, up.up_queue)];
        for hop in &self.hops {
            for direction in [&mut there, &mut back] {
                direction.push(link(None, hop.rate, hop.delay, hop.buffer, QueueDiscipline::DropTail));
            }
        }
        if self.routers == RouterName::NonCapable {
            there.push(NonCapableRouter.into());
        }
        there.extend(self.parts());
        back.extend(random_parts(up.up_loss, up.up_burst_loss, up.up_jitter, Order::Kept));
        // Hosts farther than the nearest have the difference on their access link, half each way.
        let access = self.rtt.0.iter().map(|class| class.saturating_sub(rtt) / 2).collect();
        PathPlan { down: there, up: back, access }
    }
}

/// Random loss and delay of a direction, in the order in which packets cross them.
pub(super) fn random_parts(
    loss: Ratio,
    burst: Option<Burst>,
    jitter: Span,
    order: Order,
) -> impl Iterator<Item = ElementPlan> {
    let burst =
        burst.map(|burst| burst_loss::Params::all_or_nothing(burst.enter, Ratio::new(1, burst.length)));
    let parts = [
        is_some(loss).then(|| ElementPlan::loss(loss)),
        burst.map(ElementPlan::BurstLoss),
        (!jitter.is_zero()).then_some(ElementPlan::jitter(jitter, order)),
    ];
    parts.into_iter().flatten()
}

/// Bytes of a full packet: a buffer below that holds none.
const FULL_PACKET: u64 = 1500;

/// Refuses a direction that full packets do not cross: a slip of units, mostly. A small share of a
/// BDP is none, but a link almost without a queue.
fn carries_packets(way: &str, buffer: Buffer, elements: &[ElementPlan]) -> Result<()> {
    let mut option = format!("--{way}buffer: found");
    let mut is_share = matches!(buffer, Buffer::Bdp(_));
    for element in elements {
        match element {
            ElementPlan::Link(LinkPlan { limit, .. }) => {
                ensure!(
                    is_share || (limit.packets > 0 && limit.bytes.get() >= FULL_PACKET),
                    "{option} {limit}, expected {FULL_PACKET} B at least: a full packet must find room"
                );
                "--hop: found a buffer of".clone_into(&mut option);
                is_share = false;
            }
            ElementPlan::Loss(loss) => ensure!(
                loss.share.of(FULL_PACKET) < FULL_PACKET,
                "--{way}loss: found {}, expected less: nothing would arrive",
                loss.share
            ),
            _ => {}
        }
    }
    Ok(())
}

/// More than none.
pub(super) fn is_some(share: Ratio) -> bool {
    share.of(u64::from(u32::MAX)) > 0
}

/// A plan's error with the option that caused it.
pub fn refusal(error: &PlanError) -> anyhow::Error {
    let PlanError { element, quantity, found, expected } = error;
    let (name, is_up) = match element.strip_suffix(" back") {
        Some(name) => (name, true),
        None => (element.as_str(), false),
    };
    let part = ElementPlan::PARTS.iter().find(|(part, _)| *part == name).map(|(_, option)| *option);
    let option = match (name, *quantity) {
        ("bottleneck" | "way", "rate") => "rate",
        (_, "queue") => "queue",
        (_, "changes") => return anyhow!("--change: found {found}, expected {expected}"),
        ("bottleneck" | "way" | "path", _) => return anyhow!("--rtt: found {found}, expected {expected}"),
        (_, quantity) => match part {
            Some(option) => option,
            None => return anyhow!("--hop: found a {quantity} of {found}, expected {expected}"),
        },
    };
    anyhow!("--{}{option}: found {found}, expected {expected}", if is_up { "up-" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use headstart_net::Direction;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        path: PathOptions,
        #[command(flatten)]
        up: UpOptions,
    }

    fn plan(options: &str) -> Result<PathPlan> {
        let line = Line::try_parse_from(["path"].into_iter().chain(options.split_whitespace()));
        let Line { path, up } = line.expect("options that can be read");
        path.plan(&up)
    }

    #[test]
    fn a_value_that_no_path_can_have_is_refused_by_the_name_of_its_option() {
        for (options, expected) in [
            ("--rate 0mbit", "--rate: found 0, expected more than 0"),
            ("--up-rate 0mbit", "--up-rate: found 0, expected more than 0"),
            ("--hop 0mbit/5ms/50kB", "--hop: found a rate of 0, expected more than 0"),
            ("--hop 1mbit/61s/50kB", "--hop: found a delay of 61 s, expected a minute at most"),
            ("--rtt 61s", "--rtt: found 61 s, expected a minute at most"),
            ("--rtt 20ms+61s", "--rtt: found 61 s, expected a minute at most"),
            (
                "--buffer 100B",
                "--buffer: found 100 B, expected 1500 B at least: a full packet must find room",
            ),
            (
                "--buffer 0p",
                "--buffer: found 0 packets, expected 1500 B at least: a full packet must find room",
            ),
            (
                "--up-rate 100kbit --up-buffer 10ms",
                "--up-buffer: found 125 B, expected 1500 B at least: a full packet must find room",
            ),
            (
                "--hop 1mbit/5ms/100B",
                "--hop: found a buffer of 100 B, expected 1500 B at least: a full packet must find room",
            ),
            ("--loss 100%", "--loss: found 100 %, expected less: nothing would arrive"),
            ("--up-loss 100%", "--up-loss: found 100 %, expected less: nothing would arrive"),
            ("--jitter 61s", "--jitter: found 61 s, expected a minute at most"),
            ("--up-jitter 61s", "--up-jitter: found 61 s, expected a minute at most"),
            ("--loss 101%", "--loss: found 101 %, expected 100 % at most"),
            ("--up-loss 101%", "--up-loss: found 101 %, expected 100 % at most"),
            ("--burst-loss 101%,5", "--burst-loss: found 101 %, expected 100 % at most"),
            ("--duplicate 101%", "--duplicate: found 101 %, expected 100 % at most"),
            ("--ip-options drop:101%", "--ip-options: found 101 %, expected 100 % at most"),
            ("--policer 0mbit", "--policer: found 0, expected more than 0"),
            (
                "--policer 5mbit,1kB",
                "--policer: found 1 kB, expected 1500 B at least: a full packet must pass",
            ),
            ("--router-interval 0ms", "--router-interval: found 0 ns, expected a millisecond at least"),
            ("--router-assumed-rate 0mbit", "--router-assumed-rate: found 0, expected more than 0"),
        ] {
            let error = plan(options).expect_err(options);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_small_share_of_a_bdp_is_a_buffer() {
        assert!(plan("--rate 1mbit --rtt 10ms --buffer 0.25BDP").is_ok());
    }

    #[test]
    fn a_policer_stands_before_the_bottleneck() {
        let plan = plan("--rate 10mbit --buffer 9kB --queue pie --policer 5mbit,50kB").expect("a path");
        assert_eq!(
            plan.describe(Direction::Down),
            "a policer of 5 Mbit/s and 50 kB, then 10 Mbit/s, delay 30 ms, buffer 9 kB pie"
        );
    }

    #[test]
    fn the_options_of_both_directions_become_their_elements_in_order() {
        let plan = plan(
            "--rate 10mbit --rtt 40ms+60ms --buffer 9kB --queue codel --hop 5mbit/1ms/9kB --loss 1% --jitter 2ms \
             --reorder --up-loss 2%",
        );
        let plan = plan.expect("a path");
        assert_eq!(
            plan.describe(Direction::Down),
            "10 Mbit/s, delay 20 ms, buffer 9 kB codel, then 5 Mbit/s, delay 1 ms, buffer 9 kB drop-tail, then loss 1 %, \
             then jitter 2 ms that reorders"
        );
        assert_eq!(
            plan.describe(Direction::Up),
            "10 Mbit/s, delay 20 ms, buffer 9 kB drop-tail, then 5 Mbit/s, delay 1 ms, buffer 9 kB drop-tail, then loss 2 %"
        );
        assert_eq!(plan.access, [Span::ZERO, Span::from_millis(10)]);
    }
}

//! From options to a plan for each direction.
//!
//! The words mean what they mean in a race: the data sender is outside, so `--rate`, `--buffer`, `--queue` and all that
//! happens to packets at random are those of the way down, towards the program; `--up-...` are those of the way back. Random
//! draws are those of the simulator's path with the same seed.

use anyhow::{Context, Result, bail, ensure};
use headstart_emu::plan::{Law, LinkPlan, Plan};
use headstart_net::burst_loss;
use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_sim::Seed;
use headstart_units::{Rate, Ratio, Span};

use crate::link::change::{self, Change, Setting};
use crate::link::{LinkArgs, UpOptions};
use crate::options::{Burst, Discipline, PathOptions, RouterName};

/// Both directions, and the seed of each.
#[derive(Clone, Debug)]
pub struct Plans {
    /// Towards the program.
    pub down: Plan,
    /// From the program.
    pub up: Plan,
    seed: Seed,
    /// What each is, in words.
    pub words: [String; 2],
}

impl Plans {
    /// Checks the options and makes the plans.
    ///
    /// # Errors
    /// If an option cannot be, or options contradict each other.
    pub fn new(args: &LinkArgs) -> Result<Self> {
        ensure!(
            args.path.routers == RouterName::None || args.ends.udp.is_none(),
            "--routers: found {:?} with --udp, expected none: a datagram has no IP header here",
            args.path.routers
        );
        let mut plans = Self::of(&args.path, &args.up, Seed(args.how.seed))?;
        plans.change(args, args.path.up_rate.is_some())?;
        plans.words = [words(&plans.down), words(&plans.up)];
        Ok(plans)
    }

    /// The same of a path alone, which does not change while it runs.
    ///
    /// # Errors
    /// If an option cannot be.
    pub fn of(path: &PathOptions, up: &UpOptions, seed: Seed) -> Result<Self> {
        ensure!(!path.rate.is_zero(), "--rate: found 0, expected more");
        ensure!(path.up_rate != Some(Rate::ZERO), "--up-rate: found 0, expected more");
        let [rtt] = path.rtt.0[..] else {
            bail!("--rtt: found {} times, expected one: a link has one class of hosts", path.rtt.0.len());
        };
        let most = Span::from_secs(60);
        for (name, time) in [("--rtt", rtt), ("--jitter", path.jitter), ("--up-jitter", up.up_jitter)] {
            ensure!(time <= most, "{name}: found {time}, expected a minute at most");
        }
        for (name, share) in
            [("--loss", path.loss), ("--up-loss", up.up_loss), ("--duplicate", path.duplicate)]
        {
            ensure!(share.of(1000) <= 1000, "{name}: found {share}, expected 100 % at most");
        }
        ensure!(path.population.is_none(), "--population is for the simulator");
        ensure!(
            !matches!(path.routers, RouterName::Rcp | RouterName::Deaf),
            "--routers: found {:?}, expected none, share, target or extreme: no real packet carries RCP's rate",
            path.routers
        );
        let mean = path.trace.as_ref().map_or(path.rate, |file| file.trace.mean_rate());
        let up_rate = path.up_rate.unwrap_or(path.rate);
        let up_mean = path.up_trace.as_ref().map_or(up_rate, |file| file.trace.mean_rate());
        let delay = rtt / 2;

        let mut down = Plan::link(path.rate, delay, path.buffer.limit(mean, rtt));
        down.law = law(path.queue);
        down.trace = path.trace.as_ref().map(|file| file.trace.clone());
        down.loss = path.loss;
        down.burst_loss = path.burst_loss.map(burst);
        down.jitter = path.jitter;
        down.order = if path.reorder { Order::Free } else { Order::Kept };
        down.duplicate = path.duplicate;
        let mut back = Plan::link(up_rate, delay, path.up_buffer.unwrap_or(path.buffer).limit(up_mean, rtt));
        back.law = law(up.up_queue);
        back.trace = path.up_trace.as_ref().map(|file| file.trace.clone());
        back.loss = up.up_loss;
        back.burst_loss = up.up_burst_loss.map(burst);
        back.jitter = up.up_jitter;
        down.bottleneck.part = path.routing.part(path.routers, mean);
        back.bottleneck.part = path.routing.part(path.routers, up_mean);
        for hop in &path.hops {
            ensure!(!hop.rate.is_zero(), "--hop: found a rate of 0, expected more");
            let limit = hop.buffer.limit(hop.rate, rtt);
            let part = path.routing.part(path.routers, hop.rate);
            let link = LinkPlan { rate: hop.rate, delay: hop.delay, limit, part };
            down.hops.push(link.clone());
            back.hops.push(link);
        }
        let words = [words(&down), words(&back)];
        Ok(Self { down, up: back, seed, words })
    }

    fn change(&mut self, args: &LinkArgs, mut up_is_apart: bool) -> Result<()> {
        let mut changes: Vec<Change> = args.how.changes.clone();
        if let Some(file) = &args.how.schedule {
            let name = || format!("--schedule {}", file.display());
            let text = std::fs::read_to_string(file).with_context(name)?;
            changes.extend(change::read(&text).map_err(anyhow::Error::msg).with_context(name)?);
        }
        changes.sort_by_key(|change| change.at);
        for Change { at, settings } in changes {
            up_is_apart |= settings.iter().any(|setting| matches!(setting, Setting::UpRate(_)));
            for setting in settings {
                let (down, up) = (&mut self.down, &mut self.up);
                match setting {
                    Setting::Rate(rate) => {
                        down.link_changes.push((at, LinkChange::Rate(rate)));
                        if !up_is_apart {
                            up.link_changes.push((at, LinkChange::Rate(rate)));
                        }
                    }
                    Setting::UpRate(rate) => up.link_changes.push((at, LinkChange::Rate(rate))),
                    Setting::Rtt(rtt) => {
                        for way in [down, up] {
                            way.link_changes.push((at, LinkChange::Delay(rtt / 2)));
                        }
                    }
                    Setting::Loss(share) => down.loss_changes.push((at, share)),
                    Setting::UpLoss(share) => up.loss_changes.push((at, share)),
                }
            }
        }
        for (way, name) in [(&self.down, "--trace"), (&self.up, "--up-trace")] {
            ensure!(
                way.trace.is_none() || way.link_changes.is_empty(),
                "--change: found a rate or an RTT beside {name}, expected one or the other"
            );
        }
        let changes = !self.down.link_changes.is_empty() || !self.up.link_changes.is_empty();
        ensure!(
            args.path.routers == RouterName::None || !changes,
            "--change: found a rate or an RTT beside --routers, expected one or the other"
        );
        Ok(())
    }

    /// The seed of the source of chance called `name` on the way down: the simulator's.
    #[must_use]
    pub fn down_seed(&self, name: &str) -> u64 {
        let path = self.seed.child("path");
        match name {
            "loss" => path.child("loss"),
            "router" => path.child("bottleneck").child("router"),
            _ => path.child(name),
        }
        .0
    }

    /// And on the way back, of which the simulator has no other.
    #[must_use]
    pub fn up_seed(&self, name: &str) -> u64 {
        let back = self.seed.child("path").child("way back");
        if name == "bottleneck" { back.0 } else { back.child(name).0 }
    }
}

const fn law(queue: Discipline) -> Law {
    match queue {
        Discipline::DropTail => Law::DropTail,
        Discipline::Codel => Law::CoDel,
        Discipline::Red => Law::Red,
    }
}

const fn burst(burst: Burst) -> burst_loss::Params {
    burst_loss::Params::all_or_nothing(burst.enter, Ratio::new(1, burst.length))
}

/// A direction in one line, for logs and people.
fn words(plan: &Plan) -> String {
    let link = &plan.bottleneck;
    let rate = match &plan.trace {
        Some(trace) => format!("trace of {} on average", trace.mean_rate()),
        None => link.rate.to_string(),
    };
    let buffer = if link.limit.packets == u64::MAX {
        link.limit.bytes.to_string()
    } else {
        format!("{} packets", link.limit.packets)
    };
    let mut text = format!("{rate}, delay {}, buffer {buffer} {:?}", link.delay, plan.law);
    for hop in &plan.hops {
        text += &format!(", then {} delay {}", hop.rate, hop.delay);
    }
    if link.part.is_some() {
        text += ", routers that take part";
    }
    if plan.loss.of(u64::from(u32::MAX)) > 0 {
        text += &format!(", loss {}", plan.loss);
    }
    if let Some(burst) = &plan.burst_loss {
        text += &format!(", bursts of loss begin with {} and end with {}", burst.enter, burst.leave);
    }
    if !plan.jitter.is_zero() {
        text += &format!(", jitter {} ({:?})", plan.jitter, plan.order);
    }
    if plan.duplicate.of(u64::from(u32::MAX)) > 0 {
        text += &format!(", duplicates {}", plan.duplicate);
    }
    for (at, change) in &plan.link_changes {
        text += &match change {
            LinkChange::Rate(rate) => format!(", at {:.3} s rate {rate}", at.as_secs_f64()),
            LinkChange::Delay(delay) => format!(", at {:.3} s delay {delay}", at.as_secs_f64()),
        };
    }
    for (at, share) in &plan.loss_changes {
        text += &format!(", at {:.3} s loss {share}", at.as_secs_f64());
    }
    text
}

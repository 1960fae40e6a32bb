//! From options to the path of a link.
//!
//! Options have the meaning that they have in a race. The data sender is outside, so `--rate`,
//! `--buffer`, `--queue` and all random events apply towards the program. Options `--up-...` apply
//! to the other direction. Random draws are as in the simulator's path with the same seed.

use anyhow::{Context, Result, ensure};
use headstart_host::read_text_at_most;
use headstart_net::changing::LinkChange;
use headstart_net::{ElementPlan, PathPlan, loss};
use headstart_units::{Ratio, Time};

use crate::link::LinkArgs;
use crate::link::change::{self, Change, Setting};
use headstart_study::options::{RouterName, choice_name, path};

/// Schedules larger than this are refused.
const MAX_SCHEDULE_BYTES: usize = 16 << 20;

/// The path of a link, with its changes.
///
/// # Errors
/// If an option is impossible, or options contradict each other.
pub fn plan(args: &LinkArgs) -> Result<PathPlan> {
    ensure!(
        args.path.routers == RouterName::None || args.ends.udp.is_none(),
        "--routers: found {} with --udp, expected none: a datagram has no IP header here",
        choice_name(args.path.routers)
    );
    let mut plan = args.path.plan_for_packets(&args.up)?;
    apply_changes(&mut plan, args)?;
    Ok(plan)
}

fn apply_changes(plan: &mut PathPlan, args: &LinkArgs) -> Result<()> {
    let mut changes: Vec<Change> = args.how.changes.clone();
    if let Some(file) = &args.how.schedule {
        let name = || format!("--schedule {}", file.display());
        let text = read_text_at_most(file, MAX_SCHEDULE_BYTES).with_context(name)?;
        changes.extend(change::read(&text).map_err(anyhow::Error::msg).with_context(name)?);
    }
    changes.sort_by_key(|change| change.at);
    let mut up_is_apart = args.path.up_rate.is_some();
    let PathPlan { down, up, .. } = plan;
    for Change { at, settings } in changes {
        up_is_apart |= settings.iter().any(|setting| matches!(setting, Setting::UpRate(_)));
        for setting in settings {
            match setting {
                Setting::Rate(rate) => {
                    change_link(down, at, LinkChange::Rate(rate));
                    if !up_is_apart {
                        change_link(up, at, LinkChange::Rate(rate));
                    }
                }
                Setting::UpRate(rate) => change_link(up, at, LinkChange::Rate(rate)),
                Setting::Rtt(rtt) => {
                    for direction in [&mut *down, &mut *up] {
                        change_link(direction, at, LinkChange::Delay(rtt / 2));
                    }
                }
                Setting::Loss(share) => change_loss(down, at, share),
                Setting::UpLoss(share) => change_loss(up, at, share),
            }
        }
    }
    plan.check().map_err(|error| path::refusal(&error))
}

/// Changes the first link of a direction.
fn change_link(direction: &mut [ElementPlan], at: Time, change: LinkChange) {
    let link = direction.iter_mut().find_map(|element| match element {
        ElementPlan::Link(link) => Some(link),
        _ => None,
    });
    if let Some(link) = link {
        link.changes.push((at, change));
    }
}

/// Changes the random loss of a direction, which gets one if it has none: behind its links.
fn change_loss(direction: &mut Vec<ElementPlan>, at: Time, share: Ratio) {
    let is_link = |element: &ElementPlan| matches!(element, ElementPlan::Link(_));
    let place = direction.iter().rposition(is_link).map_or(0, |last| last + 1);
    if !matches!(direction.get(place), Some(ElementPlan::Loss(_))) {
        direction.insert(place, ElementPlan::loss(Ratio::new(0, 1)));
    }
    if let Some(ElementPlan::Loss(loss::Params { changes, .. })) = direction.get_mut(place) {
        changes.push((at, share));
    }
}

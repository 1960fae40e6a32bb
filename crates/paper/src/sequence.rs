//! Several families of numbers of a run in one drawing: time-sequence plots, rates of two flows.
//!
//! A family is all numbers whose names begin with its name and a slash; what follows is their place
//! along x. Families of packets (`sent`, `acked`, `lost`, `again`) are drawn as marks, those of the
//! sender's limits (`window`, `in-flight`) as steps, others as lines. The run is the first seed's.

use super::draw::Datum;
use headstart_report::figure::{PacketKind, Series, Style};
use headstart_report::statistics::Interval;
use headstart_study::study::Numbers;

/// The families' values in the first of these runs, each in the order of x.
#[must_use]
pub fn data(runs: &[Numbers], families: &[String]) -> Vec<Datum> {
    let without_interval = |value: f64| Interval { value, low: f64::NAN, high: f64::NAN };
    let Some(numbers) = runs.first() else { return vec![] };
    let mut data = vec![];
    for family in families {
        let begin = format!("{family}/");
        let mut members: Vec<(f64, f64)> = numbers
            .range(begin.clone()..)
            .take_while(|(name, _)| name.starts_with(&begin))
            .filter_map(|(name, value)| Some((name[begin.len()..].parse().ok()?, *value)))
            .collect();
        members.sort_by(|one, other| one.0.total_cmp(&other.0));
        data.extend(members.into_iter().map(|(x, y)| Datum {
            scheme: family.clone(),
            x: without_interval(x),
            y: without_interval(y),
            label: String::new(),
        }));
    }
    data
}

/// Series of the figure.
#[must_use]
pub fn series(data: &[Datum], families: &[String]) -> Vec<Series> {
    let mut all = vec![];
    for (slot, family) in families.iter().enumerate() {
        let points: Vec<(f64, f64)> = data
            .iter()
            .filter(|datum| datum.scheme == *family)
            .map(|datum| (datum.x.value, datum.y.value))
            .collect();
        if points.is_empty() {
            continue;
        }
        all.push(match family.as_str() {
            "sent" => Series::packets(PacketKind::Sent, points),
            "acked" => Series::packets(PacketKind::Acked, points),
            "lost" => Series::packets(PacketKind::Lost, points),
            "again" => Series::packets(PacketKind::Retransmitted, points),
            "window" => Series::new(family, Style::steps().with_slot(5), points),
            "in-flight" => Series::new("in flight", Style::steps().with_slot(6), points),
            _ => Series::new(family, Style::line().with_slot(slot), points),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_distinguished_and_ordered_by_number() {
        let numbers: Numbers =
            [("sent/10.5", 3.0), ("sent/9", 2.0), ("sent-late/1", 7.0), ("window/1", 4.0), ("sent", 1.0)]
                .map(|(name, value)| (name.to_owned(), value))
                .into();
        let families = ["sent".to_owned(), "window".to_owned(), "lost".to_owned()];
        let found = data(&[numbers], &families);
        let plain: Vec<(&str, f64, f64)> =
            found.iter().map(|datum| (datum.scheme.as_str(), datum.x.value, datum.y.value)).collect();
        assert_eq!(plain, [("sent", 9.0, 2.0), ("sent", 10.5, 3.0), ("window", 1.0, 4.0)]);
        let names: Vec<String> = series(&found, &families).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["sent", "window"], "a family that is not there has no line");
        assert!(data(&[], &families).is_empty());
    }
}

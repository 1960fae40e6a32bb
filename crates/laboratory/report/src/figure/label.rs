//! Put a label beside each of many points so that none covers another.
//!
//! Each label tries places around its point, nearest first, and takes the cheapest; then each in
//! turn is tried again against all the others, until nothing improves. A moved label gets a leader.

use super::canvas::Place;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn around((x, y): Place, half_width: f64, half_height: f64) -> Self {
        Self { left: x - half_width, top: y - half_height, right: x + half_width, bottom: y + half_height }
    }

    pub fn overlap(self, other: Self) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        if width > 0.0 && height > 0.0 { width * height } else { 0.0 }
    }

    pub fn contains(self, other: Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }

    /// The place within that is nearest to `place`.
    pub fn nearest(self, place: Place) -> Place {
        (place.0.clamp(self.left, self.right), place.1.clamp(self.top, self.bottom))
    }

    /// Distance from a place to the nearest edge; zero inside.
    fn distance(self, place: Place) -> f64 {
        let nearest = self.nearest(place);
        libm::hypot(nearest.0 - place.0, nearest.1 - place.1)
    }

    fn is_crossed(self, from: Place, to: Place) -> bool {
        let corners = [
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ];
        self.nearest(from) == from
            || self.nearest(to) == to
            || (0..4).any(|side| cross(from, to, corners[side], corners[(side + 1) % 4]))
    }
}

/// True if two straight lines cross.
pub(super) fn cross(a: Place, b: Place, c: Place, d: Place) -> bool {
    let side = |p: Place, q: Place, r: Place| (q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0);
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LabelRequest {
    pub point: Place,
    pub width: f64,
    pub height: f64,
}

/// Through a label it could not be read: as bad as a line through it.
pub(super) const STRIKES_THROUGH: f64 = 2.5e3;

/// Something a label had better not cover, and how much it matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Obstacle {
    pub area: Area,
    pub weight: f64,
}

/// Above this distance a label needs a leader to its point.
const LEADER_FROM: f64 = 9.0;

/// The leader of a label at `area`, if it needs one.
pub(super) fn leader(point: Place, area: Area) -> Option<(Place, Place)> {
    let end = area.nearest(point);
    let (dx, dy) = (end.0 - point.0, end.1 - point.1);
    let distance = libm::hypot(dx, dy);
    // It begins at the rim of the mark, not in its middle.
    (distance > LEADER_FROM).then(|| ((point.0 + dx / distance * 5.0, point.1 + dy / distance * 5.0), end))
}

/// An area for each label, all within `bounds` where that is possible.
pub(super) fn place(wanted: &[LabelRequest], bounds: Area, obstacles: &[Obstacle]) -> Vec<Area> {
    let candidates: Vec<Vec<(Area, f64)>> = wanted.iter().map(|label| candidates(*label, bounds)).collect();
    let mut placed: Vec<Option<Area>> = vec![None; wanted.len()];
    // The first pass places, the others improve; it settles within a few.
    for _ in 0..8 {
        let mut changed = false;
        for index in 0..wanted.len() {
            let best = candidates[index]
                .iter()
                .map(|&(area, base)| (area, base + cost(index, area, wanted, &placed, obstacles)))
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .map(|(area, _)| area);
            changed |= placed[index] != best;
            placed[index] = best;
        }
        if !changed {
            break;
        }
    }
    placed
        .into_iter()
        .zip(wanted)
        .map(|(area, label)| area.unwrap_or(beside(*label, 1.0, 0.0, 7.0)))
        .collect()
}

/// The label in direction (`dx`, `dy`) from its point, `gap` away.
fn beside(label: LabelRequest, dx: f64, dy: f64, gap: f64) -> Area {
    let centre =
        (label.point.0 + dx * (gap + label.width / 2.0), label.point.1 + dy * (gap + label.height / 2.0));
    Area::around(centre, label.width / 2.0, label.height / 2.0)
}

/// Places around a point with what each costs by itself: distance, a poor direction.
fn candidates(label: LabelRequest, bounds: Area) -> Vec<(Area, f64)> {
    // Right first, as text is read; then above and below; the left last.
    const DIRECTIONS: [(f64, f64); 20] = [
        (1.0, 0.0),
        (1.0, -0.7),
        (1.0, 0.7),
        (0.0, -1.0),
        (0.0, 1.0),
        (-1.0, 0.0),
        (-1.0, -0.7),
        (-1.0, 0.7),
        (0.5, -1.0),
        (0.5, 1.0),
        (-0.5, -1.0),
        (-0.5, 1.0),
        (1.0, -0.3),
        (1.0, 0.3),
        (1.0, -1.6),
        (1.0, 1.6),
        (-1.0, -0.3),
        (-1.0, 0.3),
        (-1.0, -1.6),
        (-1.0, 1.6),
    ];
    const GAPS: [f64; 14] =
        [6.0, 9.0, 13.0, 18.0, 24.0, 32.0, 42.0, 56.0, 74.0, 98.0, 130.0, 170.0, 215.0, 270.0];
    let mut out = Vec::new();
    for gap in GAPS {
        for (rank, (dx, dy)) in DIRECTIONS.into_iter().enumerate() {
            let area = beside(label, dx, dy, gap);
            if bounds.contains(area) {
                out.push((area, (gap - GAPS[0]) * 3.0 + rank as f64));
            }
        }
    }
    out
}

fn cost(
    index: usize,
    area: Area,
    wanted: &[LabelRequest],
    placed: &[Option<Area>],
    obstacles: &[Obstacle],
) -> f64 {
    let mine = leader(wanted[index].point, area);
    let mut cost = 0.0;
    for (other, label) in placed.iter().enumerate().filter(|(other, _)| *other != index) {
        let point = wanted[other].point;
        // Covering another point is nearly as bad as covering its label.
        if area.overlap(Area::around(point, 5.0, 5.0)) > 0.0 {
            cost += 2e3;
        }
        // Beside another point, and further from its own, it would be taken for the other's name.
        let distance = area.distance(point);
        if distance < 2.0 * LEADER_FROM && distance < area.distance(wanted[index].point) {
            cost += 400.0;
        }
        let Some(label) = label else { continue };
        if area.overlap(*label) > 0.0 {
            cost += 1e4 + area.overlap(*label);
        }
        let theirs = leader(point, *label);
        if theirs.is_some_and(|(from, to)| area.is_crossed(from, to)) {
            cost += STRIKES_THROUGH;
        }
        if let Some((from, to)) = mine {
            if label.is_crossed(from, to) {
                cost += STRIKES_THROUGH;
            }
            if theirs.is_some_and(|(start, end)| cross(from, to, start, end)) {
                cost += 5e3;
            }
            if Area::around(point, 4.0, 4.0).is_crossed(from, to) {
                cost += 200.0;
            }
        }
    }
    cost + obstacles.iter().filter(|o| area.overlap(o.area) > 0.0).map(|o| o.weight).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Area = Area { left: 0.0, top: 0.0, right: 640.0, bottom: 340.0 };

    fn wanted(points: &[Place]) -> Vec<LabelRequest> {
        points.iter().map(|&point| LabelRequest { point, width: 70.0, height: 14.0 }).collect()
    }

    fn assert_clear(areas: &[Area]) {
        for (index, area) in areas.iter().enumerate() {
            assert!(BOUNDS.contains(*area), "{area:?} is cut off");
            for other in &areas[..index] {
                assert!(area.overlap(*other) == 0.0, "{area:?} covers {other:?}");
            }
        }
    }

    #[test]
    fn a_lone_label_stands_to_the_right() {
        let areas = place(&wanted(&[(100.0, 100.0)]), BOUNDS, &[]);
        assert_eq!(areas, [Area { left: 106.0, top: 93.0, right: 176.0, bottom: 107.0 }]);
        assert_eq!(leader((100.0, 100.0), areas[0]), None);
    }

    #[test]
    fn labels_of_close_points_do_not_overlap() {
        let crowd: Vec<Place> =
            (0..24).map(|i| (300.0 + f64::from(i % 5) * 9.0, 170.0 + f64::from(i / 5) * 7.0)).collect();
        assert_clear(&place(&wanted(&crowd), BOUNDS, &[]));
    }

    /// Two points one above the other, with bars to their left and right: neither name may stand
    /// beside the other's point.
    #[test]
    fn a_label_is_nearer_to_its_own_point_than_to_another() {
        let points = [(560.0, 100.0), (560.0, 118.0), (560.0, 122.0), (540.0, 121.0)];
        let bars = points.map(|point| Obstacle { area: Area::around(point, 45.0, 3.0), weight: 45.0 });
        let areas = place(&wanted(&points), BOUNDS, &bars);
        for (index, area) in areas.iter().enumerate() {
            for (other, point) in points.iter().enumerate().filter(|(other, _)| *other != index) {
                assert!(
                    area.distance(*point) > LEADER_FROM
                        || area.distance(points[index]) <= area.distance(*point),
                    "the name of point {index} at {area:?} stands beside point {other}"
                );
            }
        }
        assert_clear(&areas);
    }

    #[test]
    fn labels_stay_inside_at_the_corners() {
        let corners = [(0.0, 0.0), (640.0, 0.0), (0.0, 340.0), (640.0, 340.0), (640.0, 170.0)];
        assert_clear(&place(&wanted(&corners), BOUNDS, &[]));
    }

    #[test]
    fn coinciding_points_have_separate_labels() {
        assert_clear(&place(&wanted(&[(600.0, 300.0); 12]), BOUNDS, &[]));
    }
}

//! Links whose rate and delay change with time, made here: for `headstart generate examples`, and
//! as `example:NAME` for `--trace` and `--delay-trace`.

use std::fmt::Write as _;

/// Numbers below a limit, drawn by a linear congruential generator.
pub fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}

/// A link whose rate and delay change with every slot, and wander within it: no recording, but of
/// the shape of such.
pub struct Slots {
    /// By which `--trace example:NAME` reads its rates, and `--delay-trace` its delays.
    pub name: &'static str,
    seed: u64,
    /// Length of a slot in tenths of a second.
    tenths: u64,
    /// Rates of slots in Mbit/s, the least and the most; within one they wander by a quarter.
    pub rates: (u64, u64),
    /// Extra delays of slots in hundredths of a millisecond, the least and the most.
    delays: (u64, u64),
    /// Time without a way at each change, in milliseconds: packets wait until it is over.
    outage: u64,
    /// Tenths of a second in which nothing is sent, the first and the one after the last.
    silent: (u64, u64),
}

/// A terminal of a constellation in low orbit, which changes its satellite every 15 s. A phone on
/// the move, which changes its cell every five. A link that is silent for three seconds.
#[rustfmt::skip]
pub const LINKS: [Slots; 3] = [
    Slots { name: "leo", seed: 1, tenths: 150, rates: (60, 220), delays: (400, 2200), outage: 60, silent: (0, 0) },
    Slots { name: "5g", seed: 2, tenths: 50, rates: (30, 600), delays: (100, 900), outage: 30, silent: (0, 0) },
    Slots { name: "outage", seed: 3, tenths: 600, rates: (15, 15), delays: (0, 0), outage: 0, silent: (200, 230) },
];

impl Slots {
    /// A minute: rates as `--trace` reads them, one a tenth of a second, and delays as
    /// `--delay-trace` does.
    #[must_use]
    pub fn traces(&self) -> (String, String) {
        let mut below = draws(self.seed);
        let mut between = |(least, most): (u64, u64)| least + below(most - least + 1);
        let (mut rates, mut delays) = ("time_s,rate_mbit_per_s\n".to_owned(), String::new());
        let (mut rate, mut delay) = (0, 0);
        for tenth in 0..600 {
            if tenth % self.tenths == 0 {
                (rate, delay) = (between(self.rates), between(self.delays));
            }
            let percent = between((75, 125));
            let is_silent = (self.silent.0..self.silent.1).contains(&tenth);
            let rate = if is_silent { 0 } else { rate * percent / 100 };
            let _ = writeln!(rates, "{}.{},{rate}", tenth / 10, tenth % 10);
            for step in 0..10 {
                let since = (tenth % self.tenths) * 100 + step * 10;
                let waits = self.outage.saturating_sub(since) * 100;
                let all = delay + between((0, 200)) + waits;
                let _ = writeln!(delays, "{}.{:02}", all / 100, all % 100);
            }
        }
        (rates, delays)
    }
}

/// The text that `example:NAME` stands for; `None` of a file's name.
pub(super) fn find(text: &str) -> Option<Result<&'static Slots, String>> {
    let name = text.strip_prefix("example:")?;
    let found = LINKS.iter().find(|link| link.name == name);
    let known = || LINKS.each_ref().map(|link| link.name).join(", ");
    Some(found.ok_or_else(|| format!("found the example `{name}`, expected one of {}", known())))
}

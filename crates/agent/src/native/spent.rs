//! What models use and cost: of one call, and of a turn.

use tolka_facts::event::{Cost, Usage};

use crate::{ModelAbout, Price};

/// What one call of a model used. `None`: it was not told, or no price is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Used {
    pub(super) usage: Option<Usage>,
    /// In US dollars.
    pub(super) cost: Option<f64>,
}

impl Used {
    pub(super) fn by(model: &ModelAbout, usage: Option<Usage>) -> Self {
        Used { usage, cost: usage.and_then(|usage| price(model, usage)) }
    }
}

/// What a turn has used so far.
#[derive(Debug, Default)]
pub(super) struct Spent {
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<f64>,
    /// What the session had cost before.
    pub(super) before: f64,
}

impl Spent {
    pub(super) fn add(&mut self, used: Used) {
        if let Some(usage) = used.usage {
            *self.usage.get_or_insert_default() += usage;
        }
        if let Some(cost) = used.cost {
            self.cost = Some(summed(self.cost.unwrap_or_default(), cost));
        }
    }

    /// What the session has cost with this turn; `None` where no price is known.
    pub(super) fn of_session(&self) -> Option<Cost> {
        self.cost.map(|cost| Cost { amount: summed(self.before, cost), currency: "USD".to_owned() })
    }
}

/// Clients show sums as they are: to the billionth, without the dust that adding fractions leaves.
fn summed(before: f64, cost: f64) -> f64 {
    ((before + cost) * 1e9).round() / 1e9
}

fn price(about: &ModelAbout, usage: Usage) -> Option<f64> {
    let Price { input, output, cache_read, cache_write } = about.price?;
    let millionths = usage.input as f64 * input
        + (usage.output + usage.reasoning) as f64 * output
        + usage.cache_read as f64 * cache_read
        + usage.cache_write as f64 * cache_write;
    Some(millionths / 1e6)
}

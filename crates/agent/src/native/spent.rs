//! What models use and cost: of one call, and of a turn.

use std::sync::{Arc, Mutex, PoisonError};

use tolka_facts::event::{Cost, Usage, UsageSet};

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
    /// Of the usage, that of subagents of which nobody was told yet.
    of_subagents: Option<Usage>,
}

/// What subagents have used for a turn, until the turn counts it.
#[derive(Debug, Clone, Default)]
pub(super) struct Bills {
    // A std mutex: it is held to push or to take, never over an await. Those who follow subagents share it.
    unpaid: Arc<Mutex<Vec<Used>>>,
}

impl Bills {
    pub(super) fn add(&self, used: Used) {
        self.unpaid.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    }

    fn take(&self) -> Vec<Used> {
        std::mem::take(&mut *self.unpaid.lock().unwrap_or_else(PoisonError::into_inner))
    }
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

    /// Whether there was anything to count.
    pub(super) fn pay(&mut self, bills: &Bills) -> bool {
        let unpaid = bills.take();
        for used in &unpaid {
            self.add(*used);
            if let Some(usage) = used.usage {
                *self.of_subagents.get_or_insert_default() += usage;
            }
        }
        !unpaid.is_empty()
    }

    /// With so much of the model's context used.
    pub(super) fn told(&mut self, used: u64, size: u64) -> UsageSet {
        UsageSet { used, size, cost: self.of_session(), subagents: self.of_subagents.take() }
    }

    /// What the session has cost with this turn; `None` where no price is known.
    fn of_session(&self) -> Option<Cost> {
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

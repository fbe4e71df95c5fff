//! What the document demands of a stream, and how this dialect carries each fact.

use crate::check::{Findings, Law, Manners, Packet, Rule};

const JSON: Rule = Rule { name: "json", section: "TODO", demand: "Each event is one JSON object." };
const CUT: Rule = Rule { name: "cut", section: "TODO", demand: "The stream ends after an event." };
const MANNERS: Manners = Manners { bare: None, crlf: None, id: None, event: None, data: None, json: &JSON, cut: &CUT };

pub(crate) fn law() -> Box<dyn Law> {
    Box::new(Order)
}

#[derive(Debug)]
struct Order;

impl Law for Order {
    fn manners(&self) -> &'static Manners {
        &MANNERS
    }

    fn judge(&mut self, _: &Packet<'_>, _: &mut Findings<'_>) {}

    fn end(&mut self, _: &mut Findings<'_>) {}
}

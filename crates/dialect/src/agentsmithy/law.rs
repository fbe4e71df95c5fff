//! What the document demands of a stream.

mod order;
mod rules;

use crate::check::{Findings, Manners, Packet, Rule};
use order::Order;
use rules::Shape;

const MANNERS: Manners = Manners {
    bare: Some(&rules::BARE),
    crlf: Some(&rules::CRLF),
    id: Some(&rules::ID),
    event: Some((&rules::EVENT, &[])),
    data: Some(&rules::DATA),
    blank: Some(&rules::DATA),
    json: &rules::JSON,
    cut: &rules::CUT,
};

pub(crate) fn law() -> Box<dyn crate::check::Law> {
    Box::new(Law::default())
}

#[derive(Debug, Default)]
struct Law {
    order: Order,
}

impl crate::check::Law for Law {
    fn manners(&self) -> &'static Manners {
        &MANNERS
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        let Some(name) = packet.body["type"].as_str() else {
            return out.add(&rules::TYPE, "`type` is missing or no string");
        };
        let Some(Shape { rule, fields, .. }) = rules::shape(name) else {
            return out.add(&rules::TYPE, format!("the type is `{name}`"));
        };
        out.shape(rule, packet.body, fields);
        rules::values(packet.body, out);
        self.order.judge(name, packet.body, out);
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        self.order.end(out);
    }

    fn rules(&self) -> Vec<&'static Rule> {
        rules::all()
    }
}

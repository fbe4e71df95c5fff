//! How each fact is carried: as it is. A long value stands in it as its head and its hash.

use tolka_facts::Event;

use crate::{Carriage, CarriageTable};

const COUNT: usize = Event::NAMES.len();

pub(crate) const CARRIAGE: &CarriageTable = &TABLE;

/// The frame has the event's own name.
const TABLE: [(&str, Carriage); COUNT] = {
    let mut table = [("", Carriage::Never("")); COUNT];
    let mut at = 0;
    while at < COUNT {
        table[at] = (Event::NAMES[at], Carriage::Whole(std::slice::from_ref(&Event::NAMES[at])));
        at += 1;
    }
    table
};

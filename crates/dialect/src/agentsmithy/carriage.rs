//! How this dialect carries each fact.

use crate::{Carriage, CarriageTable};

pub(crate) const CARRIAGE: &CarriageTable = &[];
#[allow(unused)]
const X: Carriage = Carriage::Never("");

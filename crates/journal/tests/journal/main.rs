//! Behaviour of the journal: [`conformance`] holds for any backend, [`model`] tries it with random sequences,
//! [`sqlite`] and [`faults`] are about the one that ships.

// A helper of a test may fail it, as the test itself may.
#![allow(clippy::unwrap_used)]

mod common;
mod conformance;
mod damage;
mod faults;
mod model;
mod purge;
mod sqlite;
mod torn;
mod upgrade;

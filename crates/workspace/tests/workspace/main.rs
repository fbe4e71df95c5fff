//! The hands in real folders, with real git.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod artifact;
mod attacks;
mod bench;
mod caps;
mod changes;
mod checkpoint;
mod command;
mod diff;
mod differences;
mod edit;
mod elsewhere;
mod escape;
mod faults;
mod files;
mod forget;
mod house;
mod kill;
mod killed;
mod lost;
mod modes;
mod nested;
mod obeyed;
mod patch;
mod piped;
mod plan;
mod promised;
mod property;
mod refused;
mod refusing;
mod restore;
mod rewinding;
mod same;
mod sandbox;
mod search;
mod seed;
mod space;
mod speed;

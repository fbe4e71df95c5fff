//! The native agent from outside: the real binary, real files, real commands, and a provider on loopback that speaks the
//! real wires from a script. Nothing but the model's words is made up.

mod attacks;
mod compaction;
mod family;
mod fork;
mod kill;
mod normal;
mod processes;
pub(crate) mod stage;
mod story;

//! The native agent's loop, against models that say what was written for them.

mod hall;
mod script;

mod talk;

//! The wires to models, against a scripted provider that is as strict as the real ones, and against bytes by hand.

mod said;
mod talk;

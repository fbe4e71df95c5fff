//! Going back, from outside: the real binary, real files, real git, real commands, and a provider on loopback that plays
//! a script. What people lost elsewhere is not lost here.

mod beside;
mod kill;
mod named;
mod random;
mod stage;
mod tree;

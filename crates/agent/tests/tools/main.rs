//! Every tool in a real folder: what it does, what it tells, what the model is sent, and how it goes wrong.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod bash;
mod dialects;
mod files;
mod hall;
mod leave;
mod lines;
mod obeyed;
mod person;
mod processes;
mod search;
mod servers;
mod web;

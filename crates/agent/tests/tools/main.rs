//! Every tool in a real folder: what it does, what it tells, what the model is sent, and how it goes wrong.

mod bash;
mod files;
mod hall;
mod leave;
mod person;
mod search;

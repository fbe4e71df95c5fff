//! The types of facts and of the views made from them, for the page: `web/src/wire/types.gen.ts` is made from the Rust ones,
//! so that a new event or field cannot be forgotten there.
//!
//! `UPDATE_TYPES=1 cargo test -p tolka-facts types` writes it anew.

use std::collections::BTreeMap;
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

use crate::{Event, Fact, View};

const HEAD: &str = "\
// Made from Rust by `UPDATE_TYPES=1 cargo test -p tolka-facts types`. Do not edit.

export interface Envelope {
  v: number;
  session: SessionId;
  /** Gapless, from 1. */
  seq: number;
  time: Time;
  cause: Cause;
  /** What the agent sent, as it came. */
  raw?: unknown;
}
";

#[derive(Default)]
struct Seen(BTreeMap<String, String>);

impl TypeVisitor for Seen {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        let config = Config::new().with_large_int("number");
        let name = T::ident(&config);
        // What JavaScript has itself is no type of ours.
        if T::output_path().is_none() || self.0.contains_key(&name) {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        self.0.insert(name, format!("{docs}export {}\n", T::decl(&config)));
        T::visit_dependencies(self);
    }
}

fn types() -> String {
    let mut seen = Seen::default();
    seen.visit::<Fact>();
    seen.visit::<crate::Cause>();
    seen.visit::<View>();
    let mut events = vec!["export type Event =".to_owned()];
    let told = |name: &str, data: &str| events.push(format!("  | {{ type: \"{name}\"; data: {data} }}"));
    Event::visit_types(told, &mut seen);
    let types: Vec<String> = seen.0.into_values().collect();
    // What is left out is left out: no null stands for it.
    format!("{HEAD}\n{};\n\n{}", events.join("\n"), types.join("\n")).replace(" | null,", ",")
}

#[test]
fn the_types_of_the_page_are_those_of_the_facts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/wire/types.gen.ts");
    let types = types();
    if std::env::var_os("UPDATE_TYPES").is_some() {
        std::fs::write(&path, &types).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == types, "web/src/wire/types.gen.ts is stale: UPDATE_TYPES=1 cargo test -p tolka-facts types");
}

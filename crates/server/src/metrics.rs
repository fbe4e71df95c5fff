use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Family;

/// Counters for `/metrics`, in the text form that Prometheus reads.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [AtomicU64; 4],
    turned_away: AtomicU64,
    readers: AtomicU64,
    streams: AtomicU64,
    bytes: AtomicU64,
}

impl Metrics {
    pub(crate) fn request(&self, family: Family) {
        self.requests[family as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn told(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a reader in, unless there are `limit` already.
    pub(crate) fn reader(&self, limit: usize) -> bool {
        let entered =
            self.readers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < limit as u64).then_some(n + 1));
        if entered.is_ok() {
            self.streams.fetch_add(1, Ordering::Relaxed);
        }
        entered.is_ok()
    }

    pub(crate) fn reader_left(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// `memory`: what streams hold now.
    pub(crate) fn text(&self, memory: usize) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(out, "{name}{labels} {value}");
            }
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let families = [Family::Tolka, Family::Onyx, Family::AgentSmithy, Family::OpenCode];
        let names = ["{family=\"tolka\"}", "{family=\"onyx\"}", "{family=\"agentsmithy\"}", "{family=\"opencode\"}"];
        let requests: Vec<_> =
            names.into_iter().zip(families.map(|family| read(&self.requests[family as usize]))).collect();
        metric("tolka_requests_total", "counter", "Requests by family of routes.", &requests);
        metric(
            "tolka_requests_refused_total",
            "counter",
            "Requests that the guard turned away.",
            &[("", read(&self.turned_away))],
        );
        metric("tolka_readers", "gauge", "Streams that are open.", &[("", read(&self.readers))]);
        metric("tolka_streams_total", "counter", "Streams that were opened.", &[("", read(&self.streams))]);
        metric("tolka_stream_bytes_total", "counter", "Bytes told on streams.", &[("", read(&self.bytes))]);
        let help = "Bytes that streams hold: encoded ones, shared or not, and what is remembered of open turns.";
        metric("tolka_stream_memory_bytes", "gauge", help, &[("", memory as u64)]);
        out
    }
}

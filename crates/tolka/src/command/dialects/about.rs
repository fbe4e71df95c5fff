use tolka_dialect::{Dialect, onyx, opencode};

/// A dialect in a few words.
pub(super) struct About {
    pub(super) what: &'static str,
    /// Who says how it is spoken.
    pub(super) document: &'static str,
    /// Where clients of its family ask for it.
    pub(super) route: &'static str,
}

impl About {
    pub(super) fn of(dialect: Dialect) -> About {
        let (what, document, route) = match dialect {
            Dialect::Tolka => ("our facts, as the journal has them", "docs/facts.md", "/v1/sessions/{id}/events"),
            Dialect::Acp => (
                "the Agent Client Protocol, as an agent speaks it; recordings of it are read too",
                "version 1 of the protocol",
                "no route of its own",
            ),
            Dialect::AgentSmithy => (
                "AgentSmithy's chat, tool and file events",
                "document 003",
                "/api/chat; under /v1 it has `id:` lines to resume from, which the document's client does not read",
            ),
            Dialect::Onyx(onyx::Profile::Documented) => (
                "Onyx Build Mode's packets, as documented",
                "documents 000 and 002",
                "/api/build/sessions/{id}/send-message with {\"content\"}",
            ),
            Dialect::Onyx(onyx::Profile::Current) => (
                "the same, as today's client reads them",
                "documents 000 and 002, and the client",
                "/api/build/sessions/{id}/send-message with a client_request_id, then its turn's events",
            ),
            Dialect::OnyxSteps => (
                "Onyx Build Mode's first packets: steps, tools, output",
                "document 001",
                "/api/build/sessions/{id}/send-message?packets=steps",
            ),
            Dialect::OpenCode(opencode::Profile::Superset) => {
                ("OpenCode's events: every client is right at each of them", "document 004, and the client", "/event")
            }
            Dialect::OpenCode(opencode::Profile::Current) => (
                "the same, exactly as OpenCode sends them today",
                "the client",
                "/global/event, /event?profile=current",
            ),
            Dialect::OpenCode(opencode::Profile::Documented) => {
                ("the same, to the letter of the document", "document 004", "/event?profile=documented")
            }
        };
        About { what, document, route }
    }
}

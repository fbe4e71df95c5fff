# Everything a person needs; `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help build web run test check docs types bench bench-peers bench-encode bench-count bench-report fuzz clean

help: ## list these
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

build: ## an optimised binary: target/release/tolka, with whatever page was built
	cargo build --release --locked --bin tolka

web: ## the page, into web/dist; the next build has it inside. Without node there is a small one
	@scripts/web.sh

run: web build ## build and serve on http://127.0.0.1:4096: the agent in this folder if there is a model, else the demo
	@./target/release/tolka serve

test: ## all tests, with what they need installed and started
	@scripts/test.sh

check: ## format, lints, documentation, licences
	@scripts/check.sh

types: ## what the page knows of the facts, from the code
	UPDATE_TYPES=1 cargo test --locked -p tolka-facts --lib --test views

docs: ## docs/dialects.md, from the code
	UPDATE_DOCS=1 cargo test --locked -p tolka --test wire dialects

bench: ## speed and memory, each figure beside its reference (ONLY=paced,idle for some; see tolka-bench --list)
	@scripts/bench.sh $(if $(ONLY),--only $(ONLY))

bench-peers: ## the same beside OpenCode and sandbox-agent, installed from npm
	@scripts/bench.sh peers

bench-report: ## docs/performance.md and its charts, from what was measured last
	@scripts/bench.sh report

bench-encode: ## what it costs to tell a fact, in every dialect
	@scripts/bench.sh encode

bench-count: ## instructions per fact, beside crates/bench/baseline.json
	@scripts/bench.sh count

fuzz: ## decoders on random and damaged bytes for FUZZ_SECONDS (default 300)
	FUZZ_SECONDS=$${FUZZ_SECONDS:-300} cargo test --locked -p tolka-dialect --test fuzz -- --nocapture

clean: ## remove what was built
	cargo clean

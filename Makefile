# Everything here works on a fresh machine with Python 3.11 or newer: uv is fetched if it is missing.

UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)

.PHONY: demo test lint format bench clean \
	l0-doc-store l0-doc-search l0-doc-process l0-doc-status \
	l1-doc-index l1-doc-drain l1-doc-migrate l2-doc-refresh l2-doc-reindex l3-doc-setup

demo: .venv/ready ## Set up, index real documents, search them and ask a question
	@$(UV) run --no-sync python demo/demo.py

test: .venv/ready ## Set up and run the tests
	$(UV) run --no-sync pytest -n auto --dist loadgroup

lint: .venv/ready ## What CI checks besides the tests
	$(UV) run --no-sync ruff format --check .
	$(UV) run --no-sync ruff check .
	$(UV) run --no-sync mypy
	$(UV) run --no-sync lint-imports

format: .venv/ready
	$(UV) run --no-sync ruff format .
	$(UV) run --no-sync ruff check --fix .

bench: .venv/ready ## The benchmarks that need no data of yours; docs/benchmarks.md tells of the others
	$(UV) sync --locked --group bench
	$(UV) run --no-sync python benchmarks/embedder.py
	$(UV) run --no-sync python benchmarks/ingest.py
	$(UV) run --no-sync python benchmarks/latency.py

# The document pipeline, thin over the command: values reach it as they are, by the environment.
VADE := $(UV) run --no-sync vade
DIR ?= docs
export URL FILE QUERY DIR COLLECTION

l0-doc-store: .venv/ready ## Store one document: URL=... or FILE=...
	@if [ -n "$$URL" ]; then $(VADE) store-page -- "$$URL" && echo "Search it with COLLECTION=web"; \
	elif [ -n "$$FILE" ]; then $(VADE) store --file "$$FILE" -c "$${COLLECTION:-docs}"; \
	else echo "Say what to store: make l0-doc-store URL=https://... or FILE=..." >&2; exit 2; fi

l0-doc-search: .venv/ready ## Search: QUERY="..."
	@if [ -z "$$QUERY" ]; then echo 'Say what to search: make l0-doc-search QUERY="..."' >&2; exit 2; fi
	@$(VADE) search -c "$${COLLECTION:-docs}" -- "$$QUERY"

l0-doc-process: .venv/ready ## Work off one job of the queue
	@$(VADE) process-queue --limit 1

l0-doc-status: .venv/ready ## What is stored and what waits
	@$(VADE) status

l1-doc-index: .venv/ready ## Index a folder: DIR=docs
	@$(VADE) bulk-index -c "$${COLLECTION:-docs}" -- "$$DIR"

l1-doc-drain: .venv/ready ## Work off the whole queue
	@$(VADE) process-queue

l1-doc-migrate: .venv/ready ## Bring the database's schema up to date
	@$(VADE) db migrate

l2-doc-refresh: .venv/ready ## Look again at every stored page
	@$(VADE) refresh

l2-doc-reindex: .venv/ready ## Make all chunks and vectors again; searches go on meanwhile
	@$(VADE) reindex

l3-doc-setup: .venv/ready ## Migrate, index, drain, verify, report
	@$(MAKE) --no-print-directory l1-doc-migrate
	@$(MAKE) --no-print-directory l1-doc-index
	@$(MAKE) --no-print-directory l1-doc-drain
	@$(VADE) doctor
	@$(VADE) report

.venv/ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --locked --quiet --compile-bytecode
	@touch $@

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv

clean:
	rm -rf .venv .uv .vade dist

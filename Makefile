# Everything here works on a fresh machine with Python 3.11 or newer: uv is fetched if it is missing.

UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)

.PHONY: demo test lint format bench clean

demo: .venv/ready ## Set up, index real documents, search them and ask a question
	@$(UV) run --no-sync python demo/demo.py

test: .venv/ready ## Set up and run the tests
	$(UV) run --no-sync pytest -n auto

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

.venv/ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --locked --quiet --compile-bytecode
	@touch $@

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv

clean:
	rm -rf .venv .uv .vade dist

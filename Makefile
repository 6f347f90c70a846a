# PYTHON says which interpreter makes .venv (3.11 or later); HOST, PORT, DATA_DIR and every other setting come from the
# environment or .env. ARGS is passed on: make test ARGS="-k facts", make lock ARGS=--upgrade.
.PHONY: help run test check format lock bench bench-recall bench-inspector bench-scale studio clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' Makefile

run: .venv/run.stamp ## set up what is needed, and serve on 127.0.0.1:8000
	@exec .venv/bin/recollect serve $(ARGS)

test: .venv/dev.stamp ## set up what is needed, and run the tests (all but the slow ones)
	.venv/bin/python -m pytest -m "not slow" -n 3 --dist loadfile $(ARGS)

check: .venv/dev.stamp ## lint, format, types, layers, lock files
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports --no-logo
	scripts/lock --check

format: .venv/dev.stamp ## format the code, and fix what can be fixed
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

lock: .venv/dev.stamp ## bring the lock files in step with pyproject.toml
	scripts/lock $(ARGS)

bench: .venv/dev.stamp ## measure a turn against the floor
	.venv/bin/python -m benchmarks.turn $(ARGS)

bench-recall: .venv/dev.stamp ## measure what recall finds on LoCoMo (LOCOMO_PATH), and for persons with an assistant
	.venv/bin/python -m benchmarks.recall --folds $(ARGS)
	.venv/bin/python -m benchmarks.assistant_recall

bench-inspector: .venv/dev.stamp ## measure the inspector's pages for a user with 100,000 messages
	.venv/bin/python -m benchmarks.inspector $(ARGS)

bench-scale: .venv/dev.stamp ## measure several processes on the servers that MONGODB_URL and QDRANT_URL name
	.venv/bin/python -m benchmarks.scale $(ARGS)

studio: .venv/dev.stamp ## open the graph in LangGraph Studio
	@exec .venv/bin/langgraph dev $(ARGS)

clean: ## remove .venv, caches and builds, never data
	rm -rf .venv .hypothesis .import_linter_cache .langgraph_api .mypy_cache .pytest_cache .ruff_cache build dist .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/run.stamp: requirements.lock pyproject.toml scripts/setup
	@scripts/setup run

.venv/dev.stamp: requirements-dev.lock pyproject.toml scripts/setup
	@scripts/setup dev

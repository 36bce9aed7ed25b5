# `make demo` and `make test` need Python 3.11+ and nothing else; all they install stays in .venv.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test check lint types bench scores frameworks clean

help:
	@echo "make demo    watch an agent's tool calls meet real faults"
	@echo "make test    run the tests"
	@echo "make check   lint, format, strict types, tests"
	@echo "make bench   cost of a good call, of a claim (ratios)"
	@echo "make scores  accuracy on the shared case files, where they are"

$(VENV)/.ready: pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "failwise needs Python 3.11 or newer: install it, or say 'make PYTHON=/path/to/python'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

setup: $(VENV)/.ready

demo: setup
	$(BIN)/failwise demo

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types test

bench: setup
	$(BIN)/python scripts/bench.py

scores: setup
	$(BIN)/python scripts/scores.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

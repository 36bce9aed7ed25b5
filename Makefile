# `make demo` and `make test` need Python 3.11+ and nothing else; all they install stays in .venv.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
CLIENTS ?= .venv-clients
BIN := $(VENV)/bin
PROFILES := src/failwise/profiles

.PHONY: help setup demo test clients check lint types format bench scores clean

help:
	@echo "make demo    watch an agent's tool calls meet real faults"
	@echo "make test    run the tests"
	@echo "make clients run the tests that need some twenty client packages (a venv of their own)"
	@echo "make check   lint, format, strict types, tests"
	@echo "make format  put the code in form"
	@echo "make bench   cost of a good call, of a claim (ratios)"
	@echo "make scores  accuracy on the shared case files, where they are"
	@echo "make clean   remove what was installed and built"

$(VENV)/.ready: pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "failwise needs Python 3.11 or newer: install it, or say 'make PYTHON=/path/to/python'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

# Installing compiles the profiles; afterwards only a changed source does.
$(PROFILES)/compiled/index.json: $(wildcard $(PROFILES)/data/*.yaml) $(PROFILES)/build.py | $(VENV)/.ready
	$(BIN)/python $(PROFILES)/build.py
	@touch $@

setup: $(VENV)/.ready $(PROFILES)/compiled/index.json

demo: setup
	$(BIN)/failwise demo

test: setup
	$(BIN)/python -m pytest

# Real exceptions of real packages. Their own warnings are theirs.
$(CLIENTS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --editable '.[test,clients]'
	@touch $@

clients: setup $(CLIENTS)/.ready
	$(CLIENTS)/bin/python -m pytest tests/clients -W default

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy
	$(BIN)/mypy tests/typing/api.py

check: lint types test

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python scripts/bench.py

scores: setup
	$(BIN)/python scripts/scores.py

clean:
	rm -rf $(VENV) $(CLIENTS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis $(PROFILES)/compiled

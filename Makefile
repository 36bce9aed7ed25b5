# `make demo` and `make test` need Python 3.11+ and nothing else; all they install stays in .venv.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
CLIENTS ?= .venv-clients
ENGINES ?= .venv-engines
SERVERS ?= .venv-servers
BROWSER ?= .venv-browser
FRAMEWORKS ?= .venv-frameworks
FRAMEWORKS_MORE ?= .venv-frameworks-more
BIN := $(VENV)/bin
PROFILES := src/failwise/profiles
DOCUMENTS := src/failwise/vocabulary
# A file's tests stay together: servers and databases are started once for them. Many of them wait for
# processes and sockets, so that one worker more than there are cores does no harm; five at most.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); [ "$$n" -lt 4 ] && echo $$((n + 1)) || echo 5)
PARALLEL := --numprocesses $(WORKERS) --dist loadfile

.PHONY: help setup setup-clients setup-frameworks setup-browser setup-servers setup-engines demo test clients engines servers browser frameworks frameworks-matrix check lint types format bench bench-guards bench-agent bench-frameworks scores confidence clean

help:
	@echo "make demo    watch an agent's tool calls meet real faults"
	@echo "make test    run the tests"
	@echo "make clients run the tests that need some twenty client packages (a venv of their own)"
	@echo "make engines run the tests on durable engines and databases (a venv of their own)"
	@echo "make servers run the tests of the MCP proxy before public servers"
	@echo "make browser run the tests of the dashboard in chromium (installed with apt where it is missing)"
	@echo "make frameworks run the tests with real agent frameworks (two venvs of their own)"
	@echo "make frameworks-matrix the same on the oldest and the newest version of each (NAMES=... for some)"
	@echo "make check   lint, format, strict types, tests"
	@echo "make format  put the code in form"
	@echo "make bench   cost of a good call, of a claim, of classification (ratios)"
	@echo "make bench-agent tasks of dependent calls under faults, three loops compared"
	@echo "make bench-frameworks agents of each framework under faults: default, best setting, with Failwise"
	@echo "make scores  accuracy on the shared case files, where they are"
	@echo "make confidence measure anew how often each rule is right"
	@echo "make clean   remove what was installed and built"

$(VENV)/.ready: pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "failwise needs Python 3.11 or newer: install it, or say 'make PYTHON=/path/to/python'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

# Installing compiles the profiles and the tables; afterwards only a changed source does.
$(PROFILES)/compiled/index.json: $(wildcard $(PROFILES)/data/*.yaml) $(PROFILES)/build.py | $(VENV)/.ready
	$(BIN)/python $(PROFILES)/build.py
	@touch $@

$(DOCUMENTS)/compiled/.made: $(shell find src/failwise -name '*.toml') $(DOCUMENTS)/documents.py | $(VENV)/.ready
	$(BIN)/python $(DOCUMENTS)/documents.py
	@touch $@

setup: $(VENV)/.ready $(PROFILES)/compiled/index.json $(DOCUMENTS)/compiled/.made

demo: setup
	$(BIN)/failwise demo

test: setup
	$(BIN)/python -m pytest $(PARALLEL)

# Real exceptions of real packages. Their own warnings are theirs.
$(CLIENTS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --editable '.[test,clients]'
	@touch $@

clients: setup $(CLIENTS)/.ready
	$(CLIENTS)/bin/python -m pytest tests/clients -W default $(PARALLEL)

# Real engines, brokers and databases, in processes of their own that are killed on the way.
$(ENGINES)/.ready: pyproject.toml
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --editable '.[test,engines]'
	@touch $@

engines: setup $(ENGINES)/.ready
	$(ENGINES)/bin/python -m pytest tests/engines -W default $(PARALLEL)

# Real agent frameworks, with a scripted model behind them.
$(FRAMEWORKS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --editable '.[test,frameworks]'
	@touch $@

# Those that want other versions beside them; a test of what is not installed is left out.
$(FRAMEWORKS_MORE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS_MORE)
	$(FRAMEWORKS_MORE)/bin/python -m pip install --quiet --editable '.[test,frameworks-more]'
	@touch $@

frameworks: setup $(FRAMEWORKS)/.ready $(FRAMEWORKS_MORE)/.ready
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks -W default $(PARALLEL)
	$(FRAMEWORKS_MORE)/bin/python -m pytest tests/frameworks -W default $(PARALLEL)

# An environment for each framework and version; nothing is written but into their folder.
frameworks-matrix: setup
	$(BIN)/python scripts/frameworks.py matrix $(NAMES)

# Public MCP servers, and another client library. Without npm the two that come from there are skipped.
$(SERVERS)/.ready: Makefile
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip install --quiet mcp-server-time mcp-server-fetch mcp-server-git fastmcp
	-npm install --silent --no-audit --no-fund --prefix .servers \
		@modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
	@touch $@

servers: setup $(SERVERS)/.ready
	FAILWISE_TEST_SERVERS=$(SERVERS)/bin $(BIN)/python -m pytest tests/servers

# The dashboard in Debian's chromium, before axe too where npm is; screenshots go to build/screenshots.
# What is missing is skipped and said so.
$(BROWSER)/.ready: pyproject.toml
	$(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --quiet --editable '.[test,browser]'
	-npm install --silent --no-audit --no-fund --prefix $(BROWSER) axe-core
	@touch $@

browser: setup $(BROWSER)/.ready
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
		|| { apt-get update -qq && apt-get install -y -qq chromium fonts-noto-cjk >/dev/null; } 2>/dev/null \
		|| echo "chromium is missing and could not be installed (apt-get install chromium): its tests are skipped"
	FAILWISE_SCREENSHOTS=build/screenshots $(BROWSER)/bin/python -m pytest tests/browser -W default

# The environments of the suites, so that they can be built beforehand.
setup-clients: setup $(CLIENTS)/.ready
setup-frameworks: setup $(FRAMEWORKS)/.ready $(FRAMEWORKS_MORE)/.ready
setup-browser: setup $(BROWSER)/.ready
setup-servers: setup $(SERVERS)/.ready
setup-engines: setup $(ENGINES)/.ready

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

bench-agent: setup
	$(BIN)/python -m benchmarks.agent_tasks

bench-frameworks: setup $(FRAMEWORKS)/.ready $(FRAMEWORKS_MORE)/.ready
	$(FRAMEWORKS)/bin/python -m benchmarks.frameworks
	$(FRAMEWORKS_MORE)/bin/python -m benchmarks.frameworks

bench: setup
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_classify.py

bench-guards: setup
	$(BIN)/python scripts/bench_guards.py --outage

scores: setup
	$(BIN)/python scripts/scores.py

# After any change of rules, profiles or labelled cases: what each rule's confidence is now.
confidence: setup
	$(BIN)/python scripts/measure_confidence.py

clean:
	rm -rf $(VENV) $(CLIENTS) $(ENGINES) $(SERVERS) $(BROWSER) $(FRAMEWORKS) $(FRAMEWORKS_MORE) .servers build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis $(PROFILES)/compiled $(DOCUMENTS)/compiled

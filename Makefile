# Every target sets itself up from nothing in .venv; `make` alone lists the targets.

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin

export ANONYMIZED_TELEMETRY := False
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYTHONUTF8 := 1
# Tests start hundreds of interpreters: without cached bytecode each would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

# A stamp is named after the contents it was made from, so that it is right after a branch
# switch too, where times of files say nothing.
fingerprint = $(shell cat $(1) pyproject.toml | cksum | cut -d ' ' -f 1)
RUN_STAMP := $(VENV)/.run-$(call fingerprint,requirements/run.txt)
DEV_STAMP := $(VENV)/.dev-$(call fingerprint,requirements/dev.txt)

# dev.txt holds all of run.txt: where it is installed already, `demo` has what it needs.
READY_TO_RUN := $(if $(wildcard $(DEV_STAMP)),$(DEV_STAMP),$(RUN_STAMP))
READY_TO_WORK := $(DEV_STAMP)

# Tests run side by side, a process more than there are cores, since many wait for processes of
# their own; files stay together, for their shared parts.
PARALLEL := --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 4 --dist loadfile
QUICK := "not model and not long and not browser and not dist"
OF_COAG := tests/coag tests/contracts tests/drop_in tests/scenarios tests/docs tests/case_study

# The first Python that runs and is new enough; PYTHON=... names another.
find_python = for python in $(if $(PYTHON),$(PYTHON),python3.11 python3 python3.12 python3.13); do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "$$python"; exit 0; fi; done; \
	echo "No Python 3.11 or newer found (looked for: $(if $(PYTHON),$(PYTHON),python3.11 python3 python3.12 python3.13)). Install one, or say which: make PYTHON=/path/to/python3.11" >&2; \
	exit 1

# $(call install,requirements file): the packages by hash, then the project itself. Given as
# constraints too, the pins also hold where a package is asked for with extras: pips before 23.3
# look for `uvicorn[standard]` apart from `uvicorn`, and would want the newest.
define install
	@python=$$($(find_python)) || exit 1; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "Setting up $(VENV) with $$($$python --version) (first time, a minute or two)..."; \
		$$python -m venv --clear $(VENV) || { \
			echo "Could not make $(VENV): on Debian and Ubuntu, install python3-venv." >&2; exit 1; }; \
	fi
	@echo "Installing $(1)..."
	@$(BIN)/python -m pip install -q --require-hashes -r $(1) -c $(1)
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@rm -f $(@D)/.run-* $(@D)/.dev-*
	@touch $@
endef

$(RUN_STAMP):
	$(call install,requirements/run.txt)

$(DEV_STAMP):
	$(call install,requirements/dev.txt)

# Site, mutants and package have environments of their own: what makes them imports none of coag.
stamp = build/$(1)-env/.$(1)-$(shell cksum < requirements/$(1).txt | cut -d ' ' -f 1)
DOCS_STAMP := $(call stamp,docs)
MUTANTS_STAMP := $(call stamp,mutants)
DIST_STAMP := $(call stamp,dist)

$(DOCS_STAMP) $(MUTANTS_STAMP) $(DIST_STAMP): build/%:
	@python=$$($(find_python)) || exit 1; echo "Setting up $(@D)..."; $$python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -q --require-hashes \
		-r requirements/$(patsubst %-env,%,$(notdir $(@D))).txt
	@touch $@

# The public benchmarks have one, too, with coag in it: what they pin does not go with dev.txt.
BENCH_STAMP := build/bench-env/.bench-$(call fingerprint,requirements/bench.txt requirements/bench-alone.txt)

$(BENCH_STAMP):
	@python=$$($(find_python)) || exit 1; echo "Setting up $(@D)..."; $$python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -q --require-hashes -r requirements/bench.txt
	@$(@D)/bin/python -m pip install -q --require-hashes --no-deps -r requirements/bench-alone.txt
	@$(@D)/bin/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage test-slow test-long test-kills test-browser test-model bench-env test-bench matrix check format docs mutants dist bench lock model-table clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

setup: $(READY_TO_WORK) ## Make .venv with everything needed to work on the code

demo: $(READY_TO_RUN) ## Run both agents through the four scenarios (scripted models, no network)
	@$(BIN)/case-study demo

test: $(READY_TO_WORK) ## Run the tests
	@$(BIN)/python -m pytest $(PARALLEL) -m $(QUICK) tests

# Coverage is that of coag by the tests that use it. Measuring takes long: a job of its own.
coverage: $(READY_TO_WORK) ## Run the tests of coag, with the floor of 95 % coverage
	@mkdir -p build
	@$(BIN)/python -m pytest $(PARALLEL) -m $(QUICK) $(OF_COAG) --cov=coag --cov-branch --cov-fail-under=95 \
		--cov-report=term --cov-report=json:build/coverage.json
	@$(BIN)/python .ci/branch_floor.py build/coverage.json 95

test-slow: $(READY_TO_WORK) ## Run only the tests that take processes and many seconds
	@$(BIN)/python -m pytest -m slow

test-long: $(READY_TO_WORK) ## Run all tests but those with a real model, with more seeds, kills and examples
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest $(PARALLEL) -m "not model and not browser and not dist" -o timeout=300

test-kills: $(READY_TO_WORK) ## Kill writers of memory, sleepers, a refund desk, situated agents 1,000 times each
	@COAG_KILLS=1000 $(BIN)/python -m pytest $(PARALLEL) -m long tests/coag/store/test_kills.py \
		tests/coag/memory/consolidation/test_kills.py tests/scenarios/test_desk_kills.py \
		tests/coag/situated/test_kills.py tests/coag/agent/test_minds.py

test-browser: $(READY_TO_WORK) ## Run the tests of the pages in a real Chromium
	@.ci/browser.sh

test-model: $(READY_TO_WORK) ## Run the tests that need a real language model
	@$(BIN)/python -m pytest -m model

bench-env: $(BENCH_STAMP) ## Make build/bench-env, in which `case-study bench` plays public benchmarks

test-bench: $(BENCH_STAMP) ## Run the tests of the public benchmarks with their packages
	@build/bench-env/bin/python -m pytest -n0 tests/case_study/test_bench*.py

matrix: ## Run the fast tests with the lowest and the newest dependencies (SETS=lowest: only that)
	@python=$$($(find_python)) || exit 1; "$$python" requirements/matrix.py $(SETS)

check: $(READY_TO_WORK) ## Check format, lint, types, layers, sizes, names, dead code, budgets
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/pyright
	@$(BIN)/lint-imports
	@$(BIN)/python .ci/house.py

format: $(READY_TO_WORK) ## Put the code into its format
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: $(DOCS_STAMP) ## Build the documentation site, links checked, into build/site
	@NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --quiet
	@echo "Built build/site/index.html"

mutants: $(READY_TO_WORK) $(MUTANTS_STAMP) ## Change 200 places of coag, one by one: how many do tests notice? (hours)
	@build/mutants-env/bin/python .ci/mutate.py $(ARGUMENTS)

dist: $(READY_TO_WORK) $(DIST_STAMP) ## Build wheel and sdist into dist/, check them, install and try the wheel
	@rm -rf dist
	@build/dist-env/bin/python -m build --no-isolation --outdir dist
	@build/dist-env/bin/twine check --strict dist/*
	@$(BIN)/python -m pytest -n0 -m dist -o timeout=900 tests/architecture/test_dist.py

bench: $(READY_TO_WORK) ## Run every benchmark, one after the other
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

lock: ## Bring the requirements files in line with what is asked for (UPGRADE=1: newest versions)
	@PYTHON="$$($(find_python))" requirements/lock.sh $(if $(UPGRADE),--upgrade)

model-table: ## Bring the table of models in line with litellm's map of them
	@python=$$($(find_python)) || exit 1; "$$python" requirements/model_table.py

clean: ## Remove .venv, caches and build output (logs stay)
	@rm -rf $(VENV) build dist .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis \
		.import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

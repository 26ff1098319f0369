# Everything here sets itself up: Python 3.11+ with pip is all that is needed.
# Another Python: `make test PYTHON=python3.13 VENV=.venv-3.13`. Tests in random order: PYTEST_ARGS=--random-order.
# `make` lists the targets. Run `make -k lint` to see every linter's complaints at once.

PYTHON ?= python3
VENV ?= .venv
PROTOS_VENV ?= .venv-protos
DOCS_VENV ?= .venv-docs
SERVERS_VENV ?= .venv-servers
OUT ?= demo-out
JOBS ?= 2
# Tests wait for disks, processes and signals for a part of their time, which one more worker than cores uses.
WORKERS ?= $(shell expr $(JOBS) + 1)
# A worker without tests takes half of another one's: none waits at the end, and tests of a module stay together.
BESIDE := -n $(WORKERS) --dist worksteal
EXTRAS ?= dev
RUNS ?= 10
PYTEST_ARGS ?=
TAG ?=
STEPS ?=
MUTANTS ?=

BIN := $(VENV)/bin
# What a shell sets for Python would change what is tested: PYTHONUNBUFFERED hides output that is lost at the end.
unexport $(filter PYTHON%,$(.VARIABLES))
# npm --silent would hide why npm itself fails, such as a registry that can't be reached.
PAGE := npm --prefix web/report --loglevel error --no-audit --no-fund
SETUP := $(PYTHON) tools/setup_env.py
# Folders that hold Python now: mypy refuses one without.
TYPED := $(foreach d,protos sdk metrics synonym_graphs judge_service asking integrations labels studies client tests tools examples benchmarks,\
  $(if $(shell find $(d) -name '*.py' -print -quit 2>/dev/null),$(d)))

.DEFAULT_GOAL := help
.PHONY: help setup setup-light setup-protos test pytest test-wheel coverage test-random lint lint-ruff lint-types lint-imports \
  lint-tests lint-modules lint-protos lint-deploy lint-page page drift protos pins format demo docs wheel test-small test-servers release-check mutants bench bench-smoke findings near clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make or refresh .venv with everything a developer needs
	@$(SETUP) --venv $(VENV) --extras $(EXTRAS)

setup-light:
	@$(SETUP) --venv $(VENV) --extras server

setup-protos:
	@$(SETUP) --venv $(PROTOS_VENV) --requirements tools/protos-requirements.txt

# Linters run beside each other, and each one's lines stay together.
test: setup ## lint, then run the suite; pytest's summary comes last
	@$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=target lint
	@$(MAKE) --no-print-directory pytest

pytest: setup ## run the suite only (PYTEST_ARGS="-k chair" and the like)
	@$(BIN)/pytest $(BESIDE) $(PYTEST_ARGS) || { status=$$?; \
	  [ $$status -ne 5 ] || echo "no test was collected: that is a failure here" >&2; exit $$status; }

near: setup ## run the tests of what changed since main, by names and imports (BASE=HEAD: since the last commit)
	@$(BIN)/python tools/near.py $(if $(BASE),--base $(BASE)) -- -n $(JOBS) $(PYTEST_ARGS)

test-wheel: wheel ## run the suite on the built wheel with everything it can use (1.6 GB)
	@PYTHON="$(PYTHON)" tools/test_wheel.sh $(BESIDE) $(PYTEST_ARGS)

coverage: wheel ## the same with --large, and measure branch coverage, which takes half as long again
	@PYTHON="$(PYTHON)" tools/test_wheel.sh --cov --large $(BESIDE) $(PYTEST_ARGS)

test-random: setup ## run the suite RUNS times in random order with new examples; each run prints its seed
	@for run in $$(seq $(RUNS)); do echo "random order, run $$run of $(RUNS)"; \
	  $(BIN)/pytest $(BESIDE) --random-order --explore $(PYTEST_ARGS) || exit; done

lint: lint-ruff lint-types lint-imports lint-tests lint-modules lint-protos drift lint-deploy ## every linter, types, layers, protos, drift

lint-ruff: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: setup
	$(BIN)/mypy $(TYPED)

lint-imports: setup
	$(BIN)/lint-imports

lint-tests: setup ## refuse tests that depend on the machine's speed or on private attributes
	$(BIN)/python tools/lint_tests.py

# Figures to read, not a gate: a number of modules is no goal in itself.
lint-modules: setup
	@$(BIN)/python tools/count_modules.py

lint-protos: setup
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code

lint-deploy: setup ## check Dockerfile, compose file, Kubernetes manifests and systemd unit by their own rules
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/python tools/lint_deploy.py

# No part of `test`, which needs no npm: the committed script of the page is used as it is. CI checks it.
lint-page: ## check the script of report.html (types, tests, and that it is what its source makes), and the workflows; needs npm
	@command -v npm >/dev/null || { echo "npm is missing: apt-get install npm" >&2; exit 1; }
	$(PAGE) ci
	$(PAGE) run types
	$(PAGE) test
	$(PAGE) run check
	$(PAGE) run workflows

page: ## build the script and the style sheet of report.html from web/report (needs npm)
	$(PAGE) ci
	$(PAGE) run build

drift: setup-protos ## check that the committed protobuf code is what the generator makes
	$(PROTOS_VENV)/bin/python tools/gen_protos.py --check

protos: setup-protos ## regenerate the protobuf code
	$(PROTOS_VENV)/bin/python tools/gen_protos.py

pins: setup ## check that every pinned version can be had here today; run it whenever constraints.txt changes
	$(BIN)/uv pip compile -q --no-deps -o /dev/null constraints.txt
	$(BIN)/uv pip compile -q --no-deps -o /dev/null tools/protos-requirements.txt

format: setup ## format Python and .proto files, mend what ruff can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

demo: setup-light ## run examples/demo.py (OUT=folder for what it writes)
	$(BIN)/python examples/demo.py --out "$(OUT)"

# Not with --quiet: warnings would be neither shown nor counted, and a broken link would pass.
docs: ## build the documentation site in build/site; a broken link is an error
	@$(SETUP) --venv $(DOCS_VENV) --extras docs
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "open build/site/index.html; the search needs a server: $(DOCS_VENV)/bin/mkdocs serve"

wheel: setup ## build dist/: sdist and wheel of hallujudge and of hallujudge-client
	@rm -rf dist
	$(BIN)/python tools/build_packages.py

test-small: wheel ## try the wheels in small environments: the client, the base install, and each light extra alone
	@$(BIN)/python tools/small_environments.py

# By hand and every week, not in CI: it installs 4 GB, and takes some ten minutes.
test-servers: setup ## try the judge against real servers (vLLM's CPU build, llama-server, transformers, LiteLLM) and proxies
	@$(BIN)/python tools/judge_servers.py $(SERVERS_VENV) -- $(PYTEST_ARGS)

release-check: setup ## check all of a release that needs no account (TAG=v1.0.0, STEPS="build wire")
	@$(BIN)/python tools/release_check.py $(if $(TAG),--tag $(TAG)) $(STEPS)

mutants: setup ## make 40 small mutations in folders that changed within a week; print those that no test notices (MUTANTS="--seed 7")
	@$(BIN)/python tools/mutants.py --jobs $(JOBS) $(MUTANTS)

bench: EXTRAS := ci
bench: setup ## run every benchmark; one that lacks something says so and is passed over
	@status=0; for script in benchmarks/bench_*.py; do echo "== $$script"; \
	  $(BIN)/python "$$script" || { code=$$?; [ $$code -eq 2 ] || status=$$code; }; done; exit $$status

# Beside each other, since nothing is measured.
bench-smoke: EXTRAS := ci
bench-smoke: setup ## run every benchmark with tiny sizes: it works, and its figures mean nothing
	@printf '%s\n' benchmarks/bench_*.py | xargs -P $(JOBS) -I {} sh -c \
	  'said=$$($(BIN)/python {} --smoke 2>&1); code=$$?; printf "== %s\n%s\n" {} "$$said"; [ $$code -eq 0 ] || [ $$code -eq 2 ]'

# Each installs packages in a temporary folder of up to 2 GB, one after another.
findings: setup ## run the surprises of other tools that findings/ keeps, and check the tables of what they do (no part of CI)
	@status=0; for script in findings/*.sh; do name=$$(basename "$$script" .sh); \
	  if found=$$(PATH="$(CURDIR)/$(BIN):$$PATH" bash "$$script" 2>&1); then echo "ok       $$name: $$(echo "$$found" | tail -n 1)"; \
	  else status=1; echo "changed  $$name: $$(echo "$$found" | tail -n 3)"; fi; done; \
	$(BIN)/python tools/behaviour_tables.py || status=1; exit $$status

clean: ## remove environments, caches and what was built
	rm -rf $(VENV) $(PROTOS_VENV) $(DOCS_VENV) $(SERVERS_VENV) web/report/node_modules dist build demo-out out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target explains itself in `make help`. All of them install what they need into .venv/ and the user's cache.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo demo-check test test-all test-rest unit stress conformance lint types contracts check bench soak chaos fuzz mutants headlamp up down generate sbom image push overlay clean

# Elsewhere this may save files; here every process of the tests would compile our modules anew, a third of a second each.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
UV_REQUIREMENTS := deploy/image/uv.txt
RUN := .venv/bin/python -m
# Four workers share the tests of the second tier: one mostly waits for Docker, others for servers (ARGS="-n 0": none).
PYTEST := $(RUN) pytest -n 4
# The first tier, which answers in minutes: everything without servers, and one run through the real Kafka, index, API and
# control plane. CONTRIBUTING.md says which promise lies in which tier.
SERVED := tests/conformance tests/e2e/test_main_job.py \
	tests/integration/ingest/test_sources_to_answers.py tests/integration/kubernetes/test_kube_events.py
QUICK := tests/unit tests/contract $(SERVED)

help:  ## Show what every target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install  ## Show the story of five pods on a real Kafka, pipeline and OpenSearch, then stay up (ARGS="--once", "--json")
	@$(RUN) dev.demo $(if $(ONCE),--once) $(ARGS)

demo-check: install  ## Run the same pods, compare every answer with docs/demo.md, and exit
	@$(RUN) dev.demo --check

# The first build of Kubernetes takes minutes of both cores, and beside the tests three times as long, as do the tests.
test: install servers  ## Run the first tier: units, contracts, conformance, one run through all servers (ARGS="-k word")
	@$(RUN) tests.support.unit_sessions --also "$(SERVED)" $(ARGS)

test-all: test test-rest  ## Run every test: the first tier, then the rest of the suite

test-rest: install servers  ## Run the tests that the first tier leaves out
	@$(PYTEST) $(foreach path,$(QUICK),--ignore=$(path)) $(ARGS)

.PHONY: servers
servers: install
	@mkdir -p .run
	@$(RUN) dev.embedded install >.run/install.log 2>&1 & downloading=$$!; \
	$(RUN) dev.embedded kubernetes install; \
	wait $$downloading || { cat .run/install.log; exit 1; }

# Three sessions of pytest, which need less than workers that one session directs.
unit: install  ## Run the tests that start no servers: tests/unit and tests/contract (ARGS="-k word")
	@$(RUN) tests.support.unit_sessions $(ARGS)

# A test of a million examples may take more than the ten minutes that every other test is given.
stress: install  ## Run the tests that take a slice of their examples in the suite with all of them (ARGS="-k races")
	@$(RUN) dev.embedded install
	@SCHEDULERLOG_TEST_STRESS=1 $(PYTEST) -m stress --timeout 3600 -v $(ARGS)

conformance: install  ## Replay recorded answers of HAMi and kube-scheduler and say where ours differ (CASES=DIR: another folder of them)
	@$(RUN) tests.conformance $(CASES)

check: lint types contracts  ## Run lint, types and import contracts

lint: install  ## Check style, format, words (.ci/words.toml), docstrings and names (.ci/language.toml)
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@.venv/bin/python .ci/words.py
	@.venv/bin/python .ci/docstrings.py
	@.venv/bin/python .ci/bindings.py

types: install  ## Check types (mypy, strict)
	@.venv/bin/mypy

contracts: install  ## Check who may import whom
	@.venv/bin/lint-imports

# Without ARGS also: 2,000 pods over 1,000 nodes, on the real API server and kube-scheduler.
bench: install  ## Measure side by side with the raw libraries; a table and a JSON line each (ARGS="filter worker")
	@$(RUN) dev.embedded install
	@$(RUN) dev.bench $(ARGS)
	@$(if $(ARGS),,SCHEDULERLOG_TEST_STRESS=1 $(RUN) pytest --timeout 3600 tests/integration/kubernetes/test_many_nodes.py)

soak: install  ## Watch the worker's memory at attempts of 5,000 nodes for half an hour (ARGS="--minutes 60")
	@$(RUN) dev.embedded install
	@$(RUN) dev.bench.soak $(ARGS)

chaos: install  ## Kill and freeze everything for twenty minutes, and count what was lost (ARGS="--minutes 5 --seed 1 --one-process")
	@$(RUN) dev.embedded install
	@$(RUN) tests.chaos $(ARGS)

fuzz: install  ## Feed every reader broken input, a million pieces each, with bounds of time and memory (ARGS="records --count 1000 --seed 1")
	@$(RUN) tests.fuzz $(ARGS)

# About five seconds of CPU a mutant; docs/measurements.md lists the survivors of the last run.
mutants: install  ## Put random slips into the engine and run the unit tests of each module (ARGS="engine/hami --count 50 --seed 2")
	@$(RUN) tests.mutation $(ARGS)

# Node.js is asked for here alone: nothing else of the project needs it. The lock file names what Linux on x86-64 installs, and
# `npm ci` refuses one without the binaries of every platform; other platforms get theirs at the version that the package names.
headlamp:  ## Check, test and build the Headlamp plugin into headlamp/dist (needs Node.js 20 or newer, and npm)
	@command -v npm >/dev/null || { echo "make headlamp needs Node.js 20 or newer, and npm: https://nodejs.org" >&2; exit 1; }
	@cd headlamp; npm install --no-save --no-audit --no-fund; for step in types format lint tsc test build; do npm run "$$step"; done

up: install  ## Start Kafka and OpenSearch on this machine and print their addresses
	@$(RUN) dev.embedded up
	@$(RUN) dev.embedded env

down: install  ## Stop what `make up` started
	@$(RUN) dev.embedded down

generate: install  ## Write the JSON Schemas, the AsyncAPI document, tables, dashboards and rules that come from code
	@$(RUN) schemas generate
	@$(RUN) deploy.dashboards slo-rules deploy/kustomize/components/prometheus/slo.yaml
	@$(RUN) deploy.managed_resources
	@$(RUN) cli.settings_page
	@$(RUN) deploy.helm_from_kustomize
	@$(RUN) tests.support.harness.api_document
	@.venv/bin/python .ci/release.py
	@.venv/bin/python .ci/packages.py

sbom: install  ## Write what the container image brings, as CycloneDX, to .run/sbom.cdx.json
	@.run/uv/bin/uv export --quiet --locked --no-dev --extra services --format cyclonedx1.5 --output-file .run/sbom.cdx.json
	@.venv/bin/python deploy/image/installed.py .run/sbom.cdx.json

image: install  ## Build the container image, on the engine of .ci/docker-engine where none answers, and its SBOM
	@.ci/image

push: image  ## Push the image to a registry of yours (PREFIX=registry.example.com/gpu)
	@.ci/image push '$(PREFIX)'

overlay:  ## Write an overlay with that image into .run/overlay (PREFIX=registry.example.com/gpu OVERLAY=small [DIGEST=sha256:…])
	@.ci/overlay '$(PREFIX)' '$(or $(OVERLAY),small)' .run/overlay '$(DIGEST)'

install: .venv/.installed  ## Install Python packages by the lock file into .venv/

# Compiled once here, because where PYTHONDONTWRITEBYTECODE is set every process would compile the packages anew.
.venv/.installed: uv.lock pyproject.toml
	@$(PYTHON) .ci/python_is_usable.py
	@[ -x .run/uv/bin/uv ] || { echo "Installing uv into .run/uv"; $(PYTHON) -m venv .run/uv && .run/uv/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r $(UV_REQUIREMENTS); }
	@UV_PYTHON_DOWNLOADS=never .run/uv/bin/uv sync --locked --compile-bytecode --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@touch $@

clean: install  ## Stop the servers of `make up` and delete what was installed and written in this folder
	@$(RUN) dev.embedded down
	@rm -rf .venv .run .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

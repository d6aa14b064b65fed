# `make` lists the targets. Each installs what it needs into .venv first.

PYTHON ?= python3
BIN := .venv/bin
CORES ?= all
STUDY ?= config.yaml
BENCH_INPUTS := resources/models/me5-small resources/models/minilm-l3 resources/texts/sentences.parquet

# Absolute, so that git hooks and editors find the same tools; .venv is never activated.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test bench lint format schema report evidence ui graph clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# The stamp is newer than the pins only after a whole installation.
$(BIN)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: $(BIN)/.installed ## distil a real teacher into a real student and report (about 20 minutes)
	snakemake --cores $(CORES) --configfile $(STUDY)
	@echo && cat results/report.md && echo && echo "Curves and comparisons: make ui"

test: $(BIN)/.installed ## run all tests (about 20 minutes, no large downloads)
	python -m pytest -m "not slow"

bench: $(BIN)/.installed ## print what EMO costs, as ratios, into results/bench.json; ONLY=step for a part
	snakemake --quiet --cores $(CORES) $(BENCH_INPUTS)
	python -m benchmarks $(if $(ONLY),--only $(ONLY))

lint: $(BIN)/.installed ## ruff, mypy, codespell, snakefmt, snakemake --lint
	ruff check .
	ruff format --check .
	mypy
	codespell
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(BIN)/.installed ## format Python and Snakemake files
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schema: $(BIN)/.installed ## write workflow/schemas/config.schema.yaml from emo/config.py
	python -m emo schema --out workflow/schemas/config.schema.yaml

report: $(BIN)/.installed ## write report.zip, the Snakemake report of a finished study
	snakemake --cores $(CORES) --configfile $(STUDY) --report report.zip

evidence: $(BIN)/.installed ## keep what the study configs/NAME.yaml found, in docs/evidence/NAME
	snakemake docs/evidence/$(basename $(notdir $(lastword $(STUDY))))/table.md --cores $(CORES) --configfile $(STUDY) $(if $(DATA),--config data=$(DATA))

ui: $(BIN)/.installed ## open MLflow on the tracked runs, at http://127.0.0.1:5000
	mlflow server --backend-store-uri sqlite:///results/mlflow.db --host 127.0.0.1 --port 5000

clean: ## remove results, keep downloads
	rm -rf results checkpoints logs resources/models resources/tasks resources/texts

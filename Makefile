# Everything a newcomer types. `make` alone prints this file's help.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PYTHON := .freshet/venv/bin/python
RUN := $(PYTHON) -m services
INSTALLED := .freshet/installed/python
export PYTHONPATH := $(CURDIR)
export PYTHONUNBUFFERED := 1
# `make install` compiles the bytecode once; a user's setting against bytecode would make every start slow.
unexport PYTHONDONTWRITEBYTECODE
# The settings of another Spark on this machine must not reach ours.
unexport SPARK_HOME SPARK_CONF_DIR HADOOP_CONF_DIR PYSPARK_DRIVER_PYTHON PYSPARK_DRIVER_PYTHON_OPTS
# Our own services are not behind the proxy.
LOOPBACK := 127.0.0.1,localhost
export no_proxy := $(LOOPBACK),$(or $(no_proxy),$(NO_PROXY))
export NO_PROXY := $(no_proxy)

$(INSTALLED):
	@echo "make: nothing is installed yet, or not all of it. Type: make demo" >&2; exit 1

##@ See it run
.PHONY: demo status logs sql topic password
demo: install  ## install and start everything, run the demo, print where to look
	@$(RUN) demo
status: $(INSTALLED)  ## print if each service and each pipeline is well, or why not
	@$(RUN) status
export SERVICE
logs: $(INSTALLED)  ## follow the pipelines' logs; SERVICE=airflow for a service's (Ctrl-C ends it)
	@$(RUN) logs
sql: $(INSTALLED)  ## open the warehouse's SQL client as an analyst
	@$(RUN) sql
topic: $(INSTALLED)  ## print new events of the enriched topic (Ctrl-C ends it)
	@$(RUN) topic
password: $(INSTALLED)  ## print Airflow's login
	@$(RUN) password

.PHONY: plan
PIPELINE ?= sales
plan: $(INSTALLED)  ## print which join suits a pipeline; PIPELINE=sales by default
	@$(PYTHON) -m spark_apps.plan_join --pipeline $(PIPELINE)

##@ Start and stop
.PHONY: up down clean
up: install  ## start the services and wait until they are healthy
	@$(RUN) up
down: $(INSTALLED)  ## stop everything
	@$(RUN) down
clean:  ## stop everything, then remove data and installation (.freshet/)
	@if $(PYTHON) -c 'import services.stack' 2>/dev/null; then $(RUN) clean; fi
	@rm -rf .freshet

##@ Work on it
# A test waits for services most of its time. To debug: make test ARGS="-n0 --pdb -k ..."
TWO_WORKERS := -n 2 --no-loadscope-reorder
.PHONY: install unit test lint bench
install:  ## install what is missing (other targets do this themselves)
	@if ! command -v python3 >/dev/null; then \
	  echo "make: Python 3.11 to 3.13 is needed; no python3 is on the PATH. Debian: apt install python3-venv" >&2; exit 1; fi
	@python3 -m services.install
unit: install  ## every test that needs no service
	@$(PYTHON) -m pytest $(TWO_WORKERS) -m "not integration" $(ARGS)
test: install  ## lint, then every test, on real services of their own
	@$(MAKE) lint
	@$(PYTHON) -m services.browser
	@$(PYTHON) -m pytest $(TWO_WORKERS) --durations=20 $(ARGS)
lint: install  ## ruff with all rules, the strict type check, and who may import whom
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy .
	@$(dir $(PYTHON))lint-imports --no-logo --cache-dir .freshet/cache/import-linter
bench: install  ## run every benchmark and print its tables
	@for file in benchmarks/benchmark_*.py; do $(PYTHON) -m benchmarks.$$(basename $$file .py); done

##@ Help
.PHONY: help settings
settings: $(INSTALLED)  ## print every setting: name, value, description
	@$(RUN) settings
help:  ## print this list
	@awk 'BEGIN {FS = ":.*## "; printf "make TARGET. Newcomers: make demo, then make test.\n"} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nSettings are FRESHET_* variables, for example: FRESHET_AIRFLOW_PORT=8081 make demo (all: make settings)\n'

# make demo    a real Kafka cluster, and the throttle factor falling and rising on it
# make test    everything: lint, types, all tests on real clusters
# make check   the fast part of it: under a minute
# make bench   the figures of the README
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test check lint unit bench lock clean tools-demo tools-test

demo: tools-demo $(INSTALLED)
	$(BIN)/throttle-sidecar demo

test: tools-test lint
	$(BIN)/coverage erase
	$(BIN)/pytest -m 'not integration' -n auto --cov --cov-report=
	$(BIN)/pytest -m integration --cov --cov-append --cov-report=
	$(BIN)/coverage report --fail-under=85
	$(BIN)/coverage report --fail-under=95 \
	    --include='sidecar/throttle/*,sidecar/volumes.py,sidecar/settings/*'

check: lint unit

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(INSTALLED)
	$(BIN)/pytest -m 'not integration' -n auto

bench: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks

# The exact versions, with hashes; run after a change of the dependencies in pyproject.toml.
lock: $(INSTALLED)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --extra demo --group dev pyproject.toml -o requirements-dev.txt

tools-demo:
	tools/prerequisites python java mvn

tools-test:
	tools/prerequisites python java mvn promtool

$(INSTALLED): requirements-dev.txt pyproject.toml
	tools/prerequisites python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

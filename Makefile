# make demo    a real Kafka cluster, and the throttle factor falling and rising on it
# make test    everything: lint, types, all tests on real clusters
# make check   the fast part of it: under a minute
# make bench   the figures of docs/figures.md
# make jar     the quota callback for brokers
# make demo-pipeline    the pipeline over a real cluster's own logs, checked
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CALLBACK := deploy/quota-callback
JAR := $(CALLBACK)/target/throttle-sidecar-quota-callback.jar
MVN := mvn --quiet --batch-mode --file $(CALLBACK)

.PHONY: demo demo-pipeline test check lint unit java jar bench bench-enforcement bench-mutations bench-producer-ids bench-callback bench-pipeline docs lock clean tools-demo tools-test

demo: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/throttle-sidecar demo

demo-pipeline: tools-demo $(INSTALLED)
	rm -rf pipeline-demo
	$(BIN)/throttle-sidecar pipeline demo

test: tools-test lint java $(JAR)
	$(MVN) test -Dkafka.version=4.4.0 -Dbuild.dir=target/kafka-4.4.0
	$(BIN)/coverage erase
	$(BIN)/pytest -m 'not integration and not spark' -n auto --cov --cov-report=
	$(BIN)/pytest -m spark --cov --cov-append --cov-report=
	$(BIN)/pytest -m integration --cov --cov-append --cov-report=
	$(BIN)/coverage report --fail-under=85
	$(BIN)/coverage report --fail-under=95 \
	    --include='sidecar/throttle/*,sidecar/volumes.py,sidecar/settings/*'

check: $(INSTALLED)
	$(MAKE) --no-print-directory --output-sync=target --jobs lint unit java

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(INSTALLED)
	tools/prerequisites curl
	$(BIN)/pytest -m 'not integration and not spark' -n auto

# The quota callback's own tests, on the classes of the oldest Kafka that it runs in.
java:
	tools/prerequisites java mvn
	$(MVN) test -Dbuild.dir=target/kafka-3.3.2

jar: $(JAR)

$(JAR): $(shell find $(CALLBACK)/src/main -type f) $(CALLBACK)/pom.xml
	tools/prerequisites java mvn
	$(MVN) package -Dmaven.test.skip=true
	touch $@

bench: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks

# The quota callback beside Strimzi's plugin: an hour, on a machine that does nothing else.
bench-enforcement: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.enforcement

# Others' waits during a storm of new topics: 4 minutes, on a machine that does nothing else.
bench-mutations: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks.mutations

# A user who opens producer ids in a loop, held in each way: 6 minutes, on such a machine too.
bench-producer-ids: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.producer_ids

# The pipeline beside a bare scan and its peers: 15 minutes, on a machine that does nothing else.
bench-pipeline: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks.pipeline

# What the quota callback costs a request, beside Kafka's own and the plugin's: 4 minutes.
bench-callback: $(JAR)
	mvn --quiet --batch-mode --file $(CALLBACK)-benchmark compile exec:exec

# The tables of docs/ that are made of the code; run after a change of settings, metrics or routes.
docs: $(INSTALLED)
	$(BIN)/python -m tools.pages

# The exact versions, with hashes; run after a change of the dependencies in pyproject.toml.
lock: $(INSTALLED)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --extra demo --extra pipeline --group dev pyproject.toml -o requirements-dev.txt

tools-demo:
	tools/prerequisites python java mvn

tools-test:
	tools/prerequisites python java mvn curl promtool

$(INSTALLED): requirements-dev.txt pyproject.toml
	tools/prerequisites python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV) $(CALLBACK)/target $(CALLBACK)-benchmark/target .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

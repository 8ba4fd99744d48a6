# make demo    a real Kafka cluster, and the throttle factor falling and rising on it
# make check   lint, types, unit tests, the jar's own: one to two minutes
# make test    those, Spark's core, and brokers of one Kafka version: 10 to 16 minutes
# make test-all    everything: all versions, containers, browsers, demos, coverage: more than two hours
# make arithmetic    10 million random events beside Kafka's own quota classes: two minutes at most
# make mutate  how many mistakes in throttle/ and quotas/ no test notices: half an hour at most
# make simulate    whole clusters in virtual time, with faults by seed: SEEDS=1-5 HOURS=1
# make situations  finds seeds that reach the most situations, for a test that runs them: two minutes
# make chaos   real faults on a real cluster, by seed: 11 minutes
# make stop-line   a volume that fills to the stop line, again and again: an hour
# make bench   the figures of benchmarks/results/figures.md
# make bench-slope   a volume that fills beside a cleaner comes to rest above its limit: 35 minutes
# make kubernetes   the Helm chart on Kubernetes' own API server, which is built once in 9 minutes of CPU time
# make jar     the quota callback for brokers, and where it lies
# make dist    wheel and sdist, with the jar in them
# make release  all that a release publishes: VERSION=0.1.0 REPOSITORY_URL=https://HOST/OWNER/NAME
# make image   the container image, by docker
# make demo-pipeline    the pipeline over a real cluster's own logs, checked
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FOR_BUILD := $(VENV)/.build
FOR_RELEASE := $(VENV)/.release
FOR_DEMO := $(VENV)/.demo
FOR_PIPELINE := $(VENV)/.pipeline
INSTALLED := $(VENV)/.installed
CALLBACK := deploy/quota-callback
HELM := $(BIN)/helm
API_SERVER := $(BIN)/kube-apiserver
JAR := $(CALLBACK)/target/throttle-sidecar-quota-callback.jar
JAVA_TESTED := $(CALLBACK)/target/kafka-3.3.2/.tested
CLIENTS_INSTALLED := .cache/clients/.installed
MVN := mvn --quiet --batch-mode --file $(CALLBACK)

.PHONY: demo demo-pipeline chaos stop-line test test-all check lint unit unit-all unit-thorough brokers brokers-all spark spark-all others kubernetes demos java java-all jar dist release image arithmetic mutate simulate situations bench bench-enforcement bench-mutations bench-no-jar bench-producer-ids bench-callback bench-clients bench-pipeline bench-pipeline-cluster bench-slope lock clean tools-demo tools-test tools-clients tools-kubernetes tools-test-all chart-files docs

# Packages and jar side by side: both wait for downloads.
demo: tools-demo
	$(MAKE) --no-print-directory --output-sync=target --jobs $(FOR_DEMO) $(JAR)
	$(BIN)/throttle-sidecar demo

demo-pipeline: tools-demo $(FOR_PIPELINE)
	rm -rf pipeline-demo
	$(BIN)/throttle-sidecar demo-pipeline

# What a test needs, by its marks (pyproject.toml); each test is in exactly one phase.
UNIT := not (broker or browser or demo or helm or package or spark)
ON_BROKERS := broker and not (browser or demo or helm or package or spark)
SPARK := spark and not (broker or demo)
OTHERS := (browser or helm or package or (broker and spark)) and not demo
# Unit tests need nothing of the integration tests, each of which has a mark. The slow ones come first
# (tests/conftest.py), and a process that has none left takes some of another's.
ALONE := $(BIN)/pytest -n auto --dist worksteal --ignore=tests/integration
# A file whose tests all have one of these marks is not even imported: imports take seconds.
WITHOUT = $$(grep -lrE --include='test_*.py' '^pytestmark = .?pytest.mark.($(1))\>' tests | sed 's/^/--ignore=/')
# Two processes, each with three nodes at once, or four at most; a file's tests share their cluster.
TOGETHER := -n 2 --dist loadfile --no-loadscope-reorder

# Tests on brokers wait for half of their time, and the longer they take, the more their clusters cost:
# the others run beside them, in what they leave.
test: tools-test $(INSTALLED) $(JAR)
	$(MAKE) --no-print-directory --output-sync=target --jobs lint java brokers unit-all spark

# Spark and the others wait for other processes half of their time: side by side they take a third
# less. Brokers run beside the unit tests, as in `test`. Demos have deadlines and compare times: they run
# alone.
test-all: tools-test-all $(INSTALLED) $(JAR) $(HELM) $(API_SERVER)
	$(MAKE) --no-print-directory --output-sync=target --jobs lint java-all
	$(BIN)/coverage erase
	$(MAKE) --no-print-directory --output-sync=target --jobs brokers-all unit-thorough
	$(MAKE) --no-print-directory arithmetic
	$(MAKE) --no-print-directory simulate SEEDS=$$(shuf -i 10000-999999999 -n 1) HOURS=0.1
	$(MAKE) --no-print-directory --output-sync=target --jobs spark-all others
	$(MAKE) --no-print-directory demos
	$(BIN)/coverage combine
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
	$(BIN)/python -m tools.prose

unit: $(INSTALLED)
	tools/prerequisites curl promtool
	$(ALONE) -m '$(UNIT) and not (slow or rare)' $(call WITHOUT,helm|rare|slow|spark) \
	    --ignore=tests/sidecar/api/test_openapi.py -p no:schemathesis

# Many times as many examples, in what brokers leave of the processor.
unit-thorough: $(INSTALLED)
	COVERAGE_FILE=.coverage.unit \
	    nice $(ALONE) -m '$(UNIT)' --hypothesis-profile=thorough --timeout=900 --cov --cov-report=

unit-all: $(INSTALLED)
	nice $(ALONE) -m '$(UNIT) and not rare' $(call WITHOUT,helm|rare|spark)

brokers: $(INSTALLED) $(JAR)
	$(BIN)/pytest -m '$(ON_BROKERS) and not (versions or slow)' $(TOGETHER) tests/integration

brokers-all: $(INSTALLED) $(JAR)
	COVERAGE_FILE=.coverage.brokers REFUSAL_THROTTLES=100 ROTATIONS=20 \
	    $(BIN)/pytest -m '$(ON_BROKERS)' $(TOGETHER) --cov --cov-report=

spark: $(INSTALLED)
	nice $(BIN)/pytest -m 'spark and not (slow or rare or broker)' tests/usage_pipeline

spark-all: $(INSTALLED)
	COVERAGE_FILE=.coverage.spark RUN_KILLS=8 STREAM_KILLS=50 \
	    $(BIN)/pytest -m '$(SPARK)' --cov --cov-report=

others: $(INSTALLED) $(JAR) $(HELM) $(API_SERVER)
	COVERAGE_FILE=.coverage.others $(BIN)/pytest -m '$(OTHERS)' --cov --cov-report=

kubernetes: tools-kubernetes $(INSTALLED) $(JAR) $(HELM) $(API_SERVER)
	$(BIN)/pytest tests/deploy/kubernetes/test_api_server.py tests/integration/test_kubernetes_pods.py

demos: $(INSTALLED) $(JAR)
	COVERAGE_FILE=.coverage.demos $(BIN)/pytest -m demo --cov --cov-report=

# The quota callback's own tests, on the classes of the oldest Kafka that it runs in.
java: $(JAVA_TESTED)

$(JAVA_TESTED): $(shell find $(CALLBACK)/src -type f) $(CALLBACK)/pom.xml
	tools/prerequisites java mvn
	$(MVN) test -Dbuild.dir=target/kafka-3.3.2
	touch $@

java-all: java
	$(MVN) test -Dkafka.version=4.4.0 -Dbuild.dir=target/kafka-4.4.0

jar: $(JAR)
	@echo $(abspath $(JAR))

$(JAR): $(shell find $(CALLBACK)/src/main -type f) $(CALLBACK)/pom.xml
	tools/prerequisites java mvn
	$(MVN) compiler:compile jar:jar
	touch $@

# The same bytes each time; `python -m build` makes them too.
dist: $(FOR_BUILD) $(JAR)
	$(BIN)/python -m hatchling build --target wheel --target sdist

# The same bytes from the same commit and tools; CONTRIBUTING says what it needs.
release: $(FOR_RELEASE) $(HELM)
	tools/prerequisites java mvn buildah
	VERSION=$(VERSION) REPOSITORY_URL=$(REPOSITORY_URL) $(BIN)/python -m tools.release

image:
	docker build --build-arg REVISION=$$(git rev-parse HEAD) --tag throttle-sidecar .

# The alert rules and the dashboard in the Helm chart, which has no links, since tools that package charts
# may drop them.
CHART := deploy/helm/throttle-sidecar
chart-files:
	cp deploy/prometheus/rules/throttle-sidecar.yaml $(CHART)/files/rules.yaml
	cp deploy/grafana/throttle-sidecar.json $(CHART)/files/dashboard.json

# The newest Helm that the Go of Debian 12, 1.19, builds.
$(HELM): | $(FOR_BUILD)
	tools/prerequisites go
	GOBIN=$(CURDIR)/$(BIN) go install helm.sh/helm/v3/cmd/helm@v3.13.3

# Kubernetes' API server, for the chart's tests: 9 minutes of CPU time, once.
KUBERNETES := tests/deploy/kubernetes/apiserver
$(API_SERVER): $(KUBERNETES)/go.mod | $(INSTALLED)
	tools/prerequisites go
	cd $(KUBERNETES) && go=$$($(CURDIR)/tools/newer-go 1.26.0) && \
	    version=$$("$$go" list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	    "$$go" build -p 2 -trimpath -o $(CURDIR)/$@ \
	    -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version" \
	    k8s.io/kubernetes/cmd/kube-apiserver

# EVENTS=100000000 compares more; SEED=7 the events of that seed, else each run has others.
arithmetic: tools-demo $(INSTALLED)
	QUOTA_EVENTS=$(or $(EVENTS),10000000) QUOTA_SEED=$(SEED) \
	    $(BIN)/pytest --timeout=0 tests/integration/test_quota_arithmetic.py

# SEED=7 draws other mutants, SAMPLE=9999 all of them in the time; tests/mutants.toml has the known survivors.
mutate: $(INSTALLED)
	$(BIN)/python -m tools.mutate $(if $(SEED),--seed $(SEED)) $(if $(SAMPLE),--sample $(SAMPLE))

# SEEDS=7, HOURS=24, SPACING=30 seconds between faults, BROKERS=50, RELIEF=1 makes room; docs/reliability.md says what holds.
simulate: $(INSTALLED)
	$(BIN)/python -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS)) $(if $(HOURS),--hours $(HOURS)) \
	    $(if $(SPACING),--spacing $(SPACING)) $(if $(BROKERS),--brokers $(BROKERS)) $(if $(RELIEF),--relief)

# Chooses seeds of SEEDS=1-2000, and writes tests/simulation/reached.toml; 1 when a recorded situation is lost.
situations: $(INSTALLED)
	$(BIN)/python -m tests.simulation.recorded --renew $(or $(SEEDS),1-2000)

# SEED=2 has other faults, MINUTES=2 fewer, ARMS=callback the jar without its authorizer. SCENARIO=volumes has
# two volumes a broker, for 5 minutes; SCENARIO=stop-line fills a volume to the stop line, for 30 minutes with
# each of ARMS="authorizer callback". On a machine that does nothing else. Its table and all logs are in
# .cache/chaos.
chaos: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m tests.chaos $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ARMS),--arms $(ARMS)) \
	    $(if $(CALLBACK_ALONE),--arms callback)

stop-line:
	$(MAKE) --no-print-directory chaos SCENARIO=stop-line

bench: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks

# Each writes a page of benchmarks/results, on a machine that does nothing else. PART, ARMS and ROUNDS
# measure less; SECONDS=20 RESULTS=/tmp/try OUT=/tmp/try.md tries it.
MEASURED = $(PART) $(if $(ARMS),--arms $(ARMS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(RESULTS),--results $(RESULTS)) $(if $(OUT),--out $(OUT))

# The quota callback beside Strimzi's plugin: two hours. PART="librdkafka-3 polls" ARMS=ours
bench-enforcement: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.enforcement $(MEASURED)

# Others' waits during a storm of new topics: 4 minutes.
bench-mutations: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks.mutations $(MEASURED)

# A user who opens producer ids in a loop, throttled in each way: 6 minutes. PART=1 has one broker.
bench-producer-ids: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.producer_ids $(MEASURED)

# A volume slowed between the soft limit and the limit, beside one with the limit alone: 35 minutes and
# 8 GB. MINUTES=3 of each, ARMS=slope.
bench-slope: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.slope $(MEASURED) $(if $(MINUTES),--seconds $$(($(MINUTES) * 60)))

# A throttle by client quotas on stock brokers, beside the callback and Strimzi's plugin: 90 minutes, 10 GB.
# PART=soft ARMS=client-quotas SECONDS=130 RESULTS=/tmp/try OUT=/tmp/try.md tries it, in 4 minutes.
bench-no-jar: tools-demo $(INSTALLED) $(JAR)
	$(BIN)/python -m benchmarks.no_jar $(MEASURED)

# The pipeline beside a bare scan and its peers: 8 minutes, on a machine that does nothing else.
bench-pipeline: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks.pipeline

# The pipeline on a cluster of Spark's with 20 GB of logs in S3, then with 100,000 small files: 20 minutes
# and 30 GB on the disk of WORK, on such a machine too. SIZE=2 FILES=2000 PARTS=size OUT=/tmp/try.md try it.
bench-pipeline-cluster: tools-demo $(INSTALLED)
	$(BIN)/python -m benchmarks.pipeline.cluster $(if $(SIZE),--size $(SIZE)) \
	    $(if $(FILES),--files $(FILES)) $(if $(PARTS),--parts $(PARTS)) \
	    $(if $(WORK),--work $(WORK)) $(if $(OUT),--out $(OUT))

# Producers of many clients in throttles of 75 s, two at once, and of 10 minutes, seven at once: two
# hours and a half, the latter with 12 GB. PART=long CLIENTS="java sarama" ARMS=callback measure less;
# ABREAST=1 has one client at a time, JAR=other.jar another callback, ARMS=quota Kafka's own quota.
# PART=release ROUNDS=5 ARMS=authorizer: how soon clients are back whose records expire, 24 minutes.
bench-clients: tools-clients $(INSTALLED) $(JAR) $(CLIENTS_INSTALLED)
	$(BIN)/python -m benchmarks.clients $(MEASURED) $(if $(CLIENTS),--clients $(CLIENTS)) \
	    $(if $(ABREAST),--abreast $(ABREAST)) --jar $(JAR)

# The clients that are none of this project's: locked by go.sum, package-lock.json and hashes.
$(CLIENTS_INSTALLED): $(wildcard benchmarks/clients/produce.go benchmarks/clients/produce.js \
    benchmarks/clients/go.* benchmarks/clients/package*.json benchmarks/clients/requirements.txt)
	mkdir -p $(@D)
	cd benchmarks/clients && go build -o $(CURDIR)/$(@D)/produce .
	cp benchmarks/clients/package.json benchmarks/clients/package-lock.json \
	    benchmarks/clients/produce.js $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --silent
	$(PYTHON) -m venv $(@D)/venv
	$(@D)/venv/bin/pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
	    -r benchmarks/clients/requirements.txt
	touch $@

# What the quota callback costs a request, beside Kafka's own and the plugin's: 5 minutes.
bench-callback: $(JAR)
	mvn --quiet --batch-mode --file $(CALLBACK)-benchmark compile exec:exec

# The tables of docs/ that are made of the code; run after a change of settings, metrics or routes.
docs: $(INSTALLED)
	$(BIN)/python -m tools.pages
	$(BIN)/python -m tools.alerts_page
	$(BIN)/python -m tools.dashboard
	$(MAKE) --no-print-directory chart-files

# The exact versions, with hashes; run after a change of the dependencies in pyproject.toml.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
OF_PROJECT := --no-emit-package throttle-sidecar pyproject.toml kafka_lab/pyproject.toml
AS_DEV := --constraint requirements-dev.txt
lock: $(INSTALLED)
	$(LOCK) pyproject.toml -o requirements.txt
	$(LOCK) --constraint requirements.txt --extra aws --extra java-stores pyproject.toml \
	    -o requirements-extras.txt
	$(LOCK) $(OF_PROJECT) usage_pipeline/pyproject.toml --group dev -o requirements-dev.txt
	$(LOCK) $(AS_DEV) --group pyproject.toml:build -o requirements-build.txt
	$(LOCK) $(AS_DEV) --group pyproject.toml:release -o requirements-release.txt
	$(LOCK) $(AS_DEV) $(OF_PROJECT) -o requirements-demo.txt
	$(LOCK) $(AS_DEV) $(OF_PROJECT) usage_pipeline/pyproject.toml -o requirements-pipeline.txt
	echo uv | $(LOCK) $(AS_DEV) - -o requirements-uv.txt
	$(LOCK) benchmarks/clients/requirements.in -o benchmarks/clients/requirements.txt

tools-demo:
	tools/prerequisites python java mvn

tools-test:
	tools/prerequisites python java mvn curl promtool

tools-clients:
	tools/prerequisites python java mvn go1.21 npm

tools-kubernetes:
	tools/prerequisites python java mvn etcd go

tools-test-all:
	tools/prerequisites python java mvn curl promtool alertmanager buildah debootstrap qemu-aarch64-static systemd-analyze go \
	    chromium rsyslogd krb5kdc etcd mkfs.ext4 mkfs.xfs

# One environment, filled as far as a command needs it. The locks agree in every version, so the larger
# steps add to the smaller ones; who has all of them waits for none. Packages are compiled when they are
# imported: to compile all would take longer. The locks have every dependency; pip would look for newer
# ones that an extra allows, and know no hash of theirs.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps
EDITABLE := $(PIP_INSTALL) --no-build-isolation

$(FOR_BUILD): requirements-build.txt
	tools/prerequisites python
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes -r $<
	touch $@

$(FOR_RELEASE): requirements-release.txt $(FOR_BUILD)
	$(PIP_INSTALL) --require-hashes -r $<
	touch $@

$(FOR_DEMO): requirements-demo.txt pyproject.toml kafka_lab/pyproject.toml $(FOR_BUILD)
	$(PIP_INSTALL) --require-hashes -r $<
	$(EDITABLE) -e . -e ./kafka_lab
	touch $@

$(FOR_PIPELINE): requirements-pipeline.txt usage_pipeline/pyproject.toml $(FOR_DEMO)
	$(PIP_INSTALL) --require-hashes -r $<
	$(EDITABLE) -e ./usage_pipeline
	touch $@

# 2 GB: uv takes a third of pip's time. It reads none of pip's settings, so it gets the index from here;
# where that does not suffice, pip does it.
$(INSTALLED): requirements-dev.txt requirements-uv.txt usage_pipeline/pyproject.toml $(FOR_DEMO)
	$(PIP_INSTALL) --require-hashes -r requirements-uv.txt
	index=$${PIP_INDEX_URL:-$$($(BIN)/pip config get global.index-url 2>/dev/null)}; \
	    [ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
	    $(BIN)/uv pip install --quiet --python $(BIN)/python \
	        --no-deps --require-hashes -r $< \
	    || $(PIP_INSTALL) --require-hashes -r $<
	$(EDITABLE) -e ./usage_pipeline
	touch $(FOR_PIPELINE) $@

clean:
	rm -rf $(VENV) $(CALLBACK)/target $(CALLBACK)-benchmark/target .coverage* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

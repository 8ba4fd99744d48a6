# The sidecar, and the jar by which brokers obey it.
#
#   docker build --tag throttle-sidecar .
#   docker run --network host --read-only -e SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS=broker-0:9092 \
#       -e SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO=0.1 throttle-sidecar
#   docker run --volume jars:/jars throttle-sidecar callback copy /jars
#
# docs/install.md says what is in it, and how to build it where there is no registry.

# Any Debian with python3.11 and its venv, the same for the stages that need Python.
ARG BASE=python:3.11-slim-bookworm
# Any with Maven and a JDK 17.
ARG MAVEN=maven:3.9-eclipse-temurin-17

# A context of that name takes its place, such as the folder in which make jar builds the jar.
FROM ${MAVEN} AS callback
WORKDIR /jar
COPY deploy/quota-callback/pom.xml ./
COPY deploy/quota-callback/src/main src/main
RUN mvn --quiet --batch-mode compiler:compile jar:jar \
    && mv target/throttle-sidecar-quota-callback.jar /

FROM ${BASE} AS packages
WORKDIR /project
# With requirements-extras.txt, the image has the packages for AWS_MSK_IAM and PKCS12 stores.
ARG REQUIREMENTS=requirements.txt
# Two environments: one whose pip builds and installs, and the one that is copied, without pip.
RUN python3.11 -m venv /build && python3.11 -m venv --without-pip /opt/throttle-sidecar
COPY requirements-build.txt requirements.txt requirements-extras.txt ./
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    /build/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
        --requirement requirements-build.txt \
    && /build/bin/pip --python /opt/throttle-sidecar/bin/python install --quiet --no-cache-dir \
        --disable-pip-version-check --only-binary :all: --no-compile --require-hashes \
        --requirement "${REQUIREMENTS}"
COPY LICENSE README.md hatch_build.py pyproject.toml ./
COPY docs/runbooks docs/runbooks
COPY sidecar sidecar
COPY --from=callback /throttle-sidecar-quota-callback.jar deploy/quota-callback/target/
# What is compiled here needn't be compiled at each start, when nothing can be written. A new volume
# in one of the two folders is the user's, as they are: one for state, one to copy the jar to.
RUN /build/bin/python -m hatchling build --target wheel --directory /wheel \
    && /build/bin/pip --python /opt/throttle-sidecar/bin/python install --quiet --no-cache-dir \
        --disable-pip-version-check --no-deps --no-index --no-compile /wheel/*.whl \
    && /opt/throttle-sidecar/bin/python -m compileall -q --invalidation-mode unchecked-hash \
        /opt/throttle-sidecar/lib \
    && rm /opt/throttle-sidecar/bin/[Aa]ctivate* \
    && mkdir -p /image/opt /image/jars /image/var/lib/throttle-sidecar \
    && chown 10001:10001 /image/jars /image/var/lib/throttle-sidecar \
    && mv /opt/throttle-sidecar /image/opt/

FROM ${BASE}
ARG REVISION=""
COPY --from=packages /image /
ENV PATH=/opt/throttle-sidecar/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title="throttle-sidecar" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.description="Keeps Apache Kafka clusters from running out of disk" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /
# By number, so that Kubernetes can tell that it isn't root.
USER 10001:10001
EXPOSE 7070
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["throttle-sidecar", "health"]
ENTRYPOINT ["throttle-sidecar"]
CMD ["run"]

# The sidecar, and the jar by which brokers obey it.
#
#   docker build --tag throttle-sidecar .
#   docker run --network host --read-only -e SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS=broker-0:9092 \
#       -e SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO=0.1 throttle-sidecar
#   docker run --volume jars:/jars throttle-sidecar callback copy /jars
#
# docs/install.md says what is in it, and how to build it where there is no registry.

# What builds it: any Debian 12 with python3.11 and its venv, and any with Maven and a JDK 17. Nothing of
# them is in the image, and nothing of another architecture is run, so neither needs an emulator. With the
# whole names, since buildah and podman on Debian know no registry for short ones.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
ARG MAVEN=docker.io/library/maven:3.9-eclipse-temurin-17

# A context of that name takes its place, such as the folder in which make jar builds the jar.
FROM --platform=$BUILDPLATFORM ${MAVEN} AS callback
WORKDIR /jar
COPY deploy/quota-callback/pom.xml ./
COPY deploy/quota-callback/src/main src/main
RUN mvn --quiet --batch-mode compiler:compile jar:jar \
    && mv target/throttle-sidecar-quota-callback.jar /

FROM --platform=$BUILDPLATFORM ${BASE} AS packages
# Has no default: that would replace what --platform says.
ARG TARGETARCH
# What Python and the wheels load of Debian: unpacked, since what installs it would need a shell. Scanners
# read the packages' versions in status.d.
WORKDIR /debs
# hadolint ignore=SC2046
RUN set -e; \
    arch=${TARGETARCH:-$(dpkg --print-architecture)}; \
    dpkg --add-architecture "$arch"; \
    apt-get update -qq; \
    apt-get download -qq -o APT::Sandbox::User=root ca-certificates tzdata \
        $(printf "%s:$arch " base-files libbz2-1.0 libc6 libexpat1 libffi8 libgcc-s1 liblzma5 \
            libpython3.11-minimal libpython3.11-stdlib libssl3 libuuid1 python3.11-minimal zlib1g); \
    mkdir -p /image/var/lib/dpkg/status.d; \
    for deb in *.deb; do \
        dpkg-deb --extract "$deb" /image; \
        dpkg-deb --field "$deb" > "/image/var/lib/dpkg/status.d/${deb%%_*}"; \
    done; \
    cat /image/usr/share/ca-certificates/mozilla/*.crt > /image/etc/ssl/certs/ca-certificates.crt; \
    echo "hosts: files dns" > /image/etc/nsswitch.conf; \
    rm -r /image/usr/lib/*/gconv /image/usr/sbin /image/usr/share/ca-certificates \
        /image/usr/share/doc /image/usr/share/man
WORKDIR /project
# With requirements-extras.txt, the image has the packages for AWS_MSK_IAM and PKCS12 stores.
ARG REQUIREMENTS=requirements.txt
RUN python3.11 -m venv /build
COPY requirements-build.txt requirements.txt requirements-extras.txt ./
# For the C library of Debian 12, 2.36, and older ones.
# hadolint ignore=SC2046
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    set -e; \
    case "${TARGETARCH:-$(dpkg --print-architecture)}" in \
        amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) exit 1 ;; \
    esac; \
    /build/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
        --requirement requirements-build.txt; \
    /build/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
        --only-binary :all: --no-compile --no-deps --target /packages --python-version 3.11 \
        $(seq --format "--platform manylinux_2_%.0f_$machine" 36 -1 17) \
        --platform "manylinux2014_$machine" --requirement "${REQUIREMENTS}"
COPY LICENSE README.md hatch_build.py pyproject.toml ./
COPY docs/runbooks docs/runbooks
COPY sidecar sidecar
COPY --from=callback /throttle-sidecar-quota-callback.jar deploy/quota-callback/target/
# What is compiled here needn't be compiled at each start, when nothing can be written. A new volume
# in one of the two folders is the user's, as they are: one for state, one to copy the jar to.
RUN set -e; \
    /build/bin/python -m hatchling build --target wheel --directory /wheel; \
    /build/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-index \
        --no-compile --target /ours /wheel/*.whl; \
    ours=/image/opt/throttle-sidecar; \
    mkdir -p "$ours/bin" "$ours/lib/python3.11/site-packages" /image/jars \
        /image/var/lib/throttle-sidecar; \
    printf "home = /usr/bin\ninclude-system-site-packages = false\n" > "$ours/pyvenv.cfg"; \
    ln -s /usr/bin/python3.11 "$ours/bin/python"; \
    sed "1s|.*|#!${ours#/image}/bin/python|" /ours/bin/throttle-sidecar > "$ours/bin/throttle-sidecar"; \
    chmod 755 "$ours/bin/throttle-sidecar"; \
    rm -r /packages/bin /ours/bin; \
    mv /packages/* /ours/* "$ours/lib/python3.11/site-packages/"; \
    python3.11 -m compileall -q --invalidation-mode unchecked-hash -s /image \
        /image/usr/lib/python3.11 "$ours/lib"; \
    chown 10001:10001 /image/jars /image/var/lib/throttle-sidecar

FROM scratch
ARG REVISION=""
ARG SOURCE=""
COPY --from=packages /image /
ENV PATH=/opt/throttle-sidecar/bin:/usr/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
LABEL org.opencontainers.image.title="throttle-sidecar" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.description="Keeps Apache Kafka clusters from running out of disk" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
WORKDIR /
# By number, so that Kubernetes can tell that it isn't root.
USER 10001:10001
EXPOSE 7070
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["throttle-sidecar", "health"]
ENTRYPOINT ["throttle-sidecar"]
CMD ["run"]

# One image for all services: `docker run IMAGE api serve`, `docker run IMAGE pipeline worker`, … See docs/backends.md.
#
# The base is named by its content, so that a build today and one next year are the same. This digest is that of
# docker.io/library/python:3.11-slim which two independent public repositories pin; the machine on which this file was
# tested reaches no image registry, so it was tried on a stand-in (deploy/images/build-local.sh).
ARG PYTHON_IMAGE=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7

FROM ${PYTHON_IMAGE} AS build
ARG EXTRA=services
# Faust has ready-made wheels for x86_64 only; elsewhere its C parts are compiled here.
RUN [ "$(uname -m)" = x86_64 ] || (apt-get update && apt-get install -y --no-install-recommends gcc g++ libc6-dev)
WORKDIR /build
COPY deploy/image/uv.txt deploy/image/
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r deploy/image/uv.txt
ENV PATH=/opt/uv/bin:$PATH UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/schedulerlog
COPY pyproject.toml uv.lock ./
COPY deploy/image/reduce.py deploy/image/installed.py deploy/image/
# Everything by the lock file with its hashes. Without Kafka's Java runtime, which has no place here.
RUN uv sync --quiet --locked --no-dev --extra ${EXTRA} --no-install-project --python "$(command -v python3)" \
    && /opt/schedulerlog/bin/python deploy/image/reduce.py /opt/schedulerlog/lib/python3*/site-packages \
    && mkdir -p documents \
    && uv export --quiet --locked --no-dev --extra ${EXTRA} --format cyclonedx1.5 --output-file documents/sbom.cdx.json \
    && /opt/schedulerlog/bin/python deploy/image/installed.py documents/sbom.cdx.json \
    && uv export --quiet --locked --only-group build --format requirements.txt --output-file build.txt
COPY . .
# Python writes what it compiles below this folder, its own library included: the processes of a container may not write.
ENV PYTHONPYCACHEPREFIX=/opt/schedulerlog/compiled
RUN cp LICENSE NOTICE documents/ \
    && uv build --quiet --wheel --build-constraints build.txt --require-hashes --out-dir dist \
    && uv pip install --quiet --python /opt/schedulerlog/bin/python --no-index --no-deps dist/*.whl \
    && /opt/schedulerlog/bin/python deploy/image/import_all.py \
    && rm -rf /opt/schedulerlog/compiled/tmp

FROM ${PYTHON_IMAGE} AS runtime
# What installs packages, what no service imports, and converters between character sets, of which Python has its own.
RUN library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
    && for name in ensurepip idlelib lib2to3 pydoc_data tkinter turtledemo; do rm -rf "$library/$name"; done \
    && for name in pip setuptools wheel pkg_resources _distutils_hack; do rm -rf "$library/site-packages/$name"*; done \
    && rm -rf /usr/local/bin/pip* /usr/local/include /usr/share/python-wheels \
    && rm -rf /usr/lib/*/gconv /usr/lib/*/perl-base /usr/bin/perl* /usr/share/perl5 /var/cache/debconf /var/lib/apt/lists/* \
    && echo 'schedulerlog:x:10001:' >> /etc/group \
    && echo 'schedulerlog:x:10001:10001::/var/lib/schedulerlog:/usr/sbin/nologin' >> /etc/passwd \
    && mkdir -p /var/lib/schedulerlog && chown 10001:10001 /var/lib/schedulerlog
COPY --from=build /build/documents /usr/share/doc/schedulerlog
COPY --from=build /opt/schedulerlog /opt/schedulerlog

# One layer, so that what was deleted above takes no room.
FROM scratch
COPY --from=runtime / /
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="schedulerlog" \
      org.opencontainers.image.description="Every GPU scheduling decision as a structured event: why here, why not there, what would have to change." \
      org.opencontainers.image.source="https://github.com/schedulerlog/schedulerlog" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/opt/schedulerlog/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PYTHONPYCACHEPREFIX=/opt/schedulerlog/compiled PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The API's default is 127.0.0.1, which nothing outside the container reaches.
ENV SCHEDULERLOG_API_LISTEN=0.0.0.0:9090
WORKDIR /var/lib/schedulerlog
VOLUME /var/lib/schedulerlog
# A number: where a pod sets runAsNonRoot, the kubelet refuses a name, because it can't know that it is not root.
USER 10001:10001
ENTRYPOINT ["schedulerlog"]
CMD ["--help"]

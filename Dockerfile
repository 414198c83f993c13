# The project's services: scheduler, pipeline and api in one image; the command chooses.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ARG UV_VERSION=0.13.8
# Faust has ready-made wheels for x86_64 only; elsewhere its C parts are compiled here.
RUN [ "$(uname -m)" = x86_64 ] || (apt-get update && apt-get install -y --no-install-recommends gcc g++ libc6-dev)
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check uv==${UV_VERSION}
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1
WORKDIR /app
COPY pyproject.toml uv.lock ./
# Without the Java runtime: only embedded/ needs it, which has no place in a container.
RUN /opt/uv/bin/uv sync --locked --no-dev --extra services --no-install-project --python "$(command -v python3)"

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 schedulerlog \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /app --shell /usr/sbin/nologin schedulerlog \
    && mkdir -p /var/lib/schedulerlog && chown 10001:10001 /var/lib/schedulerlog
WORKDIR /app
COPY --from=build /app/.venv .venv
COPY . .
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The API's default is 127.0.0.1, which nothing outside the container reaches.
ENV SCHEDULERLOG_API_LISTEN=0.0.0.0:9090
# A number: where a pod sets runAsNonRoot, the kubelet refuses a name, because it can't know that it is not root.
USER 10001:10001
VOLUME /var/lib/schedulerlog
CMD ["python", "-m", "api", "serve"]

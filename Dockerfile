# syntax=docker/dockerfile:1
# The server of a trained run, with its page. Build: docker build -t halfgraph .   Run: see compose.yaml, docs/deploy.md

FROM node:22-bookworm-slim AS page
WORKDIR /build/web
COPY web/package.json web/package-lock.json web/.npmrc ./
RUN npm ci
COPY web ./
RUN npm run --silent check && npm run --silent build

FROM python:3.11-slim-bookworm AS wheel
WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
COPY --from=page /build/src/halfgraph/serving/page src/halfgraph/serving/page
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# torch without CUDA, which is a tenth of its size
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin halfgraph
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" --constraint /tmp/constraints.txt /tmp/wheels/*.whl \
    && rm -r /tmp/wheels /tmp/constraints.txt
# compiled kernels of numba, and nothing else, are written at run time
ENV NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/api/health/live', timeout=4)"]
ENTRYPOINT ["halfgraph"]
CMD ["serve", "/data/run", "--graph", "/data/graph", "--host", "0.0.0.0", "--log", "json"]

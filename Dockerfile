FROM python:3.13.16-slim-bookworm@sha256:a1165e272e578941b84abc79e4ab38a0305cd12803a5c4247979ac7655f4d641 AS build
RUN python -m venv /opt/recollect
WORKDIR /src
COPY requirements.lock .
RUN /opt/recollect/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock
COPY . .
RUN /opt/recollect/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation .

FROM python:3.13.16-slim-bookworm@sha256:a1165e272e578941b84abc79e4ab38a0305cd12803a5c4247979ac7655f4d641
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin recollect \
    && install --directory --owner recollect --group recollect /data
COPY --from=build /opt/recollect /opt/recollect
ENV PATH=/opt/recollect/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DATA_DIR=/data
USER recollect
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.getenv('PORT', '8000')}/health\", timeout=3)"]
# Outside a loopback address the service starts only with ALLOW_INSECURE=true: publish its port on 127.0.0.1 alone.
CMD ["recollect", "serve", "--host", "0.0.0.0"]

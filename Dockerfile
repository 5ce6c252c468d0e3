# docker build -t quorate . && docker run -p 8787:8787 -v quorate:/project quorate
FROM python:3.12-slim AS build
WORKDIR /source
COPY README.md ./
COPY packages packages
RUN python -m venv /opt/quorate && \
    /opt/quorate/bin/pip install --no-cache-dir ./packages/quorate ./packages/quorate-serve

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 quorate && install -d -o quorate /project
COPY --from=build /opt/quorate /opt/quorate
ENV PATH=/opt/quorate/bin:$PATH PYTHONUNBUFFERED=1
USER quorate
WORKDIR /project
VOLUME /project
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/api/v1/health', timeout=4)"
ENTRYPOINT ["quorate"]
CMD ["serve", "--host", "0.0.0.0"]

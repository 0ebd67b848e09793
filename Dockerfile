# The agent for a team, docs/run/deploy.md. No root at run time; commands run in bubblewrap's sandbox.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git make openssh-client \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 10001 agent \
    && install --directory --owner=agent --group=agent --mode=0700 /data /workspaces /app

WORKDIR /app
USER agent
COPY --chown=agent:agent . .
RUN make .venv-serve/.ready && rm -r .venv ~/.cache

ENV CHECKPOINTS=/data/checkpoints.sqlite SESSIONS=/data/sessions.sqlite \
    TRUST_FILE=/data/trusted.json WORKSPACES=/workspaces LISTEN=0.0.0.0 LOG_FORMAT=json
VOLUME ["/data", "/workspaces"]
EXPOSE 2024
STOPSIGNAL SIGTERM
# As make serve; without make, the stop signal reaches the server.
CMD [".venv-serve/bin/python", "-m", "modeshift", "serve", "--port", "2024", "--workers", "2"]

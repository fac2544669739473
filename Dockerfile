# syntax=docker/dockerfile:1

# Debian instead of Alpine: Chronos itself has no native parts and runs on both, but handlers may use packages with
# prebuilt binaries, and most of these need glibc. `--build-arg NODE=24-alpine` saves about 60 MB.
ARG NODE=24-bookworm-slim

# --workspaces=false everywhere: the workspace scripts/mongod would install a MongoDB for development and tests.
FROM node:${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev --workspaces=false --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json worker.ts ./
COPY src ./src
COPY examples ./examples
RUN node_modules/.bin/tsc -p tsconfig.build.json
# The CLI, for `docker exec CONTAINER chronos status`.
RUN chmod +x dist/src/cli/main.js && mkdir bin && ln -s ../dist/src/cli/main.js bin/chronos

FROM node:${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --workspaces=false --ignore-scripts --no-audit --no-fund

FROM node:${NODE} AS worker
LABEL org.opencontainers.image.title="chronos-worker" \
      org.opencontainers.image.description="A distributed job scheduler and worker service on MongoDB."
# Logs are always JSON. HTTP_PORT is for the health check: on loopback only, unless HTTP_HOST is set.
ENV NODE_ENV=production \
    PATH=/app/bin:$PATH \
    LOG_FORMAT=json \
    HTTP_PORT=8080
WORKDIR /app
# Owned by root: the process can read its code but not change it.
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/bin ./bin
COPY package.json ./
# A number, because Kubernetes cannot check that a user name is not root.
USER 1000:1000
EXPOSE 8080
# node is process 1 and handles SIGTERM and SIGINT itself, so it needs no init and no shell. If handlers start programs
# that leave orphans behind, run the container with `--init`, which reaps them.
STOPSIGNAL SIGTERM
# Liveness, not readiness: a worker that waits for MongoDB must not be killed for that.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HTTP_PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/worker.js"]
CMD ["work"]

# syntax=docker/dockerfile:1

# The Debian image and not Alpine: Chronos itself has no native parts and runs on either, but handlers are other
# people's code, and the prebuilt binaries of their packages are for glibc. `--build-arg NODE=24-alpine` saves some 60 MB.
ARG NODE=24-bookworm-slim

# --workspaces=false everywhere: the workspace scripts/mongod brings a whole MongoDB for development and tests.
FROM node:${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev --workspaces=false --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json worker.ts ./
COPY src ./src
COPY examples ./examples
RUN node_modules/.bin/tsc -p tsconfig.build.json
# The command, for `docker exec CONTAINER chronos status`.
RUN chmod +x dist/src/cli/main.js && mkdir bin && ln -s ../dist/src/cli/main.js bin/chronos

FROM node:${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --workspaces=false --ignore-scripts --no-audit --no-fund

FROM node:${NODE} AS worker
LABEL org.opencontainers.image.title="chronos-worker" \
      org.opencontainers.image.description="A distributed job scheduler and worker service on MongoDB."
# json logs whatever the terminal; HTTP on loopback, for the health check, unless HTTP_HOST says otherwise.
ENV NODE_ENV=production \
    PATH=/app/bin:$PATH \
    LOG_FORMAT=json \
    HTTP_PORT=8080
WORKDIR /app
# Owned by root: the process may read what it runs, and not change it.
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/bin ./bin
COPY package.json ./
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 8080
# node is process 1 and has handlers of its own for both signals: no init, no shell in between. Where handlers start
# programs that leave orphans behind, `--init` collects them.
STOPSIGNAL SIGTERM
# Alive, not ready: a worker that waits for MongoDB is not to be killed for it.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HTTP_PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/worker.js"]
CMD ["work"]

import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import * as ClusterSessionPlacement from "#src/agents/cluster/ClusterSessionPlacement.ts"
import { SessionPlacement } from "#src/agents/SessionPlacement.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import { freePort } from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"

export const clusterSecret = "a secret that only these machines of a test have"

/** Takeover within seconds, so that tests do not wait. */
const limits = {
  clusterLookMillis: 200,
  clusterGraceMillis: 1_500,
  clusterFindMillis: 1_500
}

/** A scripted session's input, and the destination of its frames. */
export interface ServedClient {
  readonly key: Principal
  readonly sink: FrameSink
  readonly received: Array<string | number>
  drained: number
  closed: number | undefined
}

/** One process of a cluster, without its processes: homes over a real Postgres and real connections. */
export interface Machine {
  readonly homes: SessionPlacement["Service"]
  readonly clients: Array<ServedClient>
  readonly ended: Array<string>
  /** of the sessions asked about, those that `leave` was called for */
  readonly left: Array<(sessionId: string) => boolean>
  readonly newSession: () => string
  readonly stop: () => Promise<void>
}

export const key: Principal = {
  id: "key_1",
  keyId: "key_1",
  keyName: "test",
  kind: "router",
  ownerId: "usr_1",
  scopes: [],
  expiresAt: null,
  role: "user",
  models: ["sandbox/coder"],
  collections: null,
  rateLimitPerMinute: null
}

/** Serves a client as a session would that says `echo …` to each frame, throws at `throw` and ends at `close`. */
const serve =
  (clients: Array<ServedClient>) =>
  (principal: Principal, sink: FrameSink): HotSocketListener => {
    const client: ServedClient = { key: principal, sink, received: [], drained: 0, closed: undefined }
    clients.push(client)
    return {
      received: (message) => {
        client.received.push(typeof message === "string" ? message : message.byteLength)
        if (message === "throw") throw new Error("as asked")
        if (message === "close") sink.close(4009, "superseded")
        else if (typeof message === "string") sink.send(`echo ${message}`)
      },
      drained: () => void client.drained++,
      closed: (code) => void (client.closed = code)
    }
  }

export const startMachine = async (databaseUrl: string, secret = clusterSecret): Promise<Machine> => {
  const member = {
    host: "127.0.0.1",
    port: await freePort(),
    secret: Redacted.make(secret),
    silentSeconds: 4
  }
  const scope = Scope.makeUnsafe()
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl), cluster: member, limits })
  const context = await Effect.runPromise(
    Layer.buildWithScope(
      ClusterSessionPlacement.layer.pipe(
        Layer.provide([Postgres.layer, Readiness.layer]),
        Layer.provide(config)
      ),
      scope
    )
  )
  const homes = Context.get(context, SessionPlacement)
  const clients: Array<ServedClient> = []
  const ended: Array<string> = []
  const left: Array<(sessionId: string) => boolean> = []
  await Effect.runPromise(
    homes.open({
      serve: serve(clients),
      end: (sessionId) => Effect.sync(() => void ended.push(sessionId)),
      leave: (isGone) => Effect.sync(() => void left.push(isGone))
    })
  )
  const newSession = (): string => {
    for (;;) {
      const id = newId("ses")
      if (homes.isHere(id)) return id
    }
  }
  return {
    homes,
    clients,
    ended,
    left,
    newSession,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Waits until a condition holds. */
export const holds = (what: string, condition: () => boolean): Promise<void> =>
  until(what, async () => (condition() ? undefined : "not yet"))

/** The socket of a client, at a speed set by the test. */
export class ClientSocket implements FrameSink {
  readonly frames: Array<string> = []
  bufferedBytes = 0
  isSlow = false
  closed: { readonly code: number; readonly reason: string } | undefined

  send(text: string): boolean {
    this.frames.push(text)
    if (this.isSlow) this.bufferedBytes += Buffer.byteLength(text)
    return !this.isSlow
  }

  close(code: number, reason: string): void {
    this.closed = { code, reason }
  }
}

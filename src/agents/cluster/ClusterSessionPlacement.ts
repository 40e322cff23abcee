import { type Cause, Context, Effect, Exit, Layer, References, Schema, Scope } from "effect"
import { Sharding, Entity } from "effect/cluster"
import { RpcSerialization, RpcServer, Rpc } from "effect/rpc"
import { SocketServer } from "effect/socket/SocketServer"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig, type ClusterMember } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { HomeAway, type LocalHome, SessionPlacement } from "../SessionPlacement.ts"
import { Cluster, type ClusterAddressUnusable } from "#src/infra/cluster/Cluster.ts"
import { HeldShards } from "./HeldShards.ts"
import { RelayHome } from "./RelayHome.ts"
import { RelayLinks } from "./RelayLinks.ts"
import { RelayRpcs } from "./RelayRpcs.ts"
import { SessionId } from "#schemas/core/Ids.ts"
import * as ClusterRunner from "./ClusterRunner.ts"

/**
 * The address of one shard's sessions for other machines: the holder of the shard's lock answers. One for each shard
 * and not for each session, whose 15 KB would be four times the size of an idle session. Messages are volatile:
 * everything that has to last is in the steps of sessions.
 */
const ShardEntity = Entity.make("AgentHome", [
  /** The address at which the shard's home takes clients of other machines. */
  Rpc.make("Where", { success: Schema.Struct({ host: Schema.String, port: Schema.Int }) }),
  /** Ends a session, at its owner's request. */
  Rpc.make("End", { payload: { sessionId: SessionId } })
])

/** The interval between checks of the shards held. */
const lookMillis = 250
/** a shard's entity is unloaded after so long without a message */
const entityIdleMillis = 60_000
/** an unreachable home is logged at most this often */
const awaySayMillis = 10_000

const relayServer = (relays: RelayHome, server: SocketServer["Service"]) =>
  RpcServer.layer(RelayRpcs, { disableTracing: true }).pipe(
    Layer.provide(
      RelayRpcs.toLayer({
        Link: ({ link }) => relays.link(link),
        Push: ({ items, link }) => relays.push(link, items)
      })
    ),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.provide([ClusterRunner.serialization, Layer.succeed(SocketServer, server)])
  )

const shardEntityOf = (member: ClusterMember, home: () => LocalHome | undefined) =>
  ShardEntity.toLayer(
    {
      Where: () => Effect.succeed({ host: member.host, port: member.port }),
      End: ({ payload }) => home()?.end(payload.sessionId) ?? Effect.void
    },
    { maxIdleTime: entityIdleMillis, concurrency: "unbounded", disableFatalDefects: true }
  )

const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const scope = yield* Effect.scope
  const { member, serverOf, transport } = yield* Cluster
  let home: LocalHome | undefined

  // A scope of its own: this process stops being a home while its last messages still go over the links.
  const runner = yield* Scope.fork(scope)
  const entityServer = shardEntityOf(member, () => home).pipe(
    Layer.provideMerge(ClusterRunner.layer(member, transport, serverOf("signalbox-runner"), limits))
  )
  // effect/cluster warns once for each shard in trouble; here it is logged once as an error, and `/readyz` shows it.
  const cluster = yield* Layer.buildWithScope(entityServer, runner).pipe(
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
  const held = new HeldShards(
    Context.get(cluster, Sharding.Sharding),
    ClusterRunner.shards,
    limits.clusterGraceMillis
  )
  const entities = yield* Effect.provideContext(ShardEntity.client, cluster)
  const entityOf = (sessionId: string) => entities(held.entityIdOf(sessionId))

  const isHere = (sessionId: string) => held.isHere(sessionId)
  const relays = new RelayHome({ isHere, serve: () => home?.serve }, limits)
  yield* Layer.buildWithScope(relayServer(relays, serverOf("signalbox-relay")), scope)
  const serialization = Context.get(
    yield* Layer.buildWithScope(ClusterRunner.serialization, scope),
    RpcSerialization.RpcSerialization
  )
  const links = new RelayLinks(transport, limits, scope, serialization)

  const orAway = orHomeAway(limits)

  const look = Effect.suspend(() => {
    const isGone = held.look(performance.now())
    return isGone === undefined || home === undefined ? Effect.void : home.leave(isGone)
  }).pipe(Effect.catchCause((cause) => Effect.logError("Sessions that moved were not left", cause)))
  yield* Effect.forkIn(Effect.forever(Effect.andThen(look, Effect.sleep(lookMillis))), scope)
  const { register } = yield* Readiness
  yield* register(
    "agent-homes",
    Effect.sync(() => ({
      status: held.count > 0 ? "up" : "degraded",
      detail: `${held.count} of ${ClusterRunner.shards} parts of the sessions have their home here`
    }))
  )
  yield* awaitShards(held, limits.clusterStartMillis)

  return SessionPlacement.of({
    isHere,
    serveThere: (sessionId, key, sink) =>
      orAway(
        sessionId,
        Effect.flatMap(entityOf(sessionId).Where(), (address) => links.to(address))
      ).pipe(Effect.map((link) => link.serve(sessionId, key, sink))),
    endThere: (sessionId) => orAway(sessionId, entityOf(sessionId).End({ sessionId })),
    open: (opened) => Effect.sync(() => void (home = opened)),
    depart: Scope.close(runner, Exit.void)
  })
})

/** On any failure the client comes again. Logged at intervals: many clients come at once. */
const orHomeAway = ({ clusterFindMillis }: Limits) => {
  let saidMillis = -Infinity
  const say = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (performance.now() - saidMillis < awaySayMillis) return Effect.void
      saidMillis = performance.now()
      return Effect.logWarning(
        "The home of an agent session cannot be reached: its process died or is replaced, or has another CLUSTER_SECRET",
        cause
      )
    })
  return <A, E>(sessionId: string, effect: Effect.Effect<A, E>): Effect.Effect<A, HomeAway> =>
    effect.pipe(
      Effect.timeout(clusterFindMillis),
      Effect.catchCause((cause) => Effect.andThen(say(cause), Effect.fail(new HomeAway({ sessionId }))))
    )
}

/** A new session needs a home here: the first ones come within a second or two. */
const awaitShards = (held: HeldShards, millis: number): Effect.Effect<void> =>
  Effect.suspend(() =>
    held.count > 0 ? Effect.void : Effect.sleep(50).pipe(Effect.andThen(Effect.fail("none")))
  ).pipe(
    Effect.eventually,
    Effect.timeoutOption(millis),
    Effect.flatMap((some) =>
      some._tag === "Some"
        ? Effect.void
        : Effect.logWarning(
            "No agent sessions have their home here yet: the other processes still hold all of them"
          )
    )
  )

/** Divides sessions among the processes on one Postgres. */
export const layer: Layer.Layer<
  SessionPlacement,
  SqlError | ClusterAddressUnusable,
  SqlClient | AppConfig | Readiness
> = Layer.effect(SessionPlacement, make).pipe(Layer.provide(Cluster.layer))

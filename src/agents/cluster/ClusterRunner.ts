import { Effect, Layer, Option } from "effect"
import {
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerServer,
  type Sharding,
  ShardingConfig,
  SqlRunnerStorage
} from "effect/cluster"
import { RpcClient, RpcSerialization, RpcServer } from "effect/rpc"
import { Socket } from "effect/socket/Socket"
import { SocketServer } from "effect/socket/SocketServer"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ClusterMember } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import type { ClusterTransport } from "#src/infra/cluster/ClusterTransport.ts"

/**
 * Shards of all sessions; must be the same number on all machines. Locks are released one by one
 * over one connection, so that more of them make a hand-over slower; fewer divide less evenly.
 */
export const shards = 60

/** A frame of a session is 1 MiB at most, and a batch one frame longer than its size at most; JSON may double it. */
const messageBytes = 8 * 1024 * 1024

export const serialization = RpcSerialization.layerNdjsonWith({ maxBufferSize: messageBytes })

const clients = (transport: ClusterTransport) =>
  Layer.effect(
    Runners.RpcClientProtocol,
    Effect.map(RpcSerialization.RpcSerialization, (serialization) => ({
      codecFor: serialization.codecFor,
      make: (address: RunnerAddress.RunnerAddress) =>
        Effect.flatMap(transport.connect("signalbox-runner", address), (socket) =>
          RpcClient.makeProtocolSocket().pipe(
            Effect.provideService(Socket, socket),
            Effect.provideService(RpcSerialization.RpcSerialization, serialization)
          )
        )
    }))
  )

/**
 * Postgres alone decides which machines live: a runner silent for `CLUSTER_SILENT_SECONDS` is gone for all, and its
 * locks end with its connection or, where its machine froze, by Postgres's idle_session_timeout of the same length.
 * Health checks between machines are left out: two that cannot reach each other would declare each other dead.
 */
const configOf = ({ host, port, silentSeconds }: ClusterMember, limits: Limits) =>
  ShardingConfig.layer({
    runnerAddress: Option.some(RunnerAddress.make(host, port)),
    shardsPerGroup: shards,
    shardLockExpiration: silentSeconds * 1_000,
    shardLockRefreshInterval: silentSeconds * 250,
    refreshAssignmentsInterval: limits.clusterLookMillis,
    entityMessagePollInterval: limits.clusterLookMillis,
    entityTerminationTimeout: 1_000,
    simulateRemoteSerialization: false
  })

/** This process as one of effect/cluster's runners, with its shards and their locks in Postgres. */
export const layer = (
  member: ClusterMember,
  transport: ClusterTransport,
  server: SocketServer["Service"],
  limits: Limits
): Layer.Layer<Sharding.Sharding, SqlError, SqlClient> => {
  const protocol = RpcServer.layerProtocolSocketServer.pipe(
    Layer.provide(Layer.succeed(SocketServer, server))
  )
  return RunnerServer.layerWithClients.pipe(
    Layer.provide([protocol, clients(transport)]),
    Layer.provide([serialization, MessageStorage.layerNoop, RunnerHealth.layerNoop, SqlRunnerStorage.layer]),
    Layer.provide(configOf(member, limits))
  )
}

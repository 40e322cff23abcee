import { Context, Effect, Layer, Redacted, Schema } from "effect"
import type { SocketServer } from "effect/socket/SocketServer"
import { AppConfig, type ClusterMember } from "#src/Config.ts"
import { ClusterTransport } from "./ClusterTransport.ts"

/** The process cannot listen at `CLUSTER_ADDRESS`. */
export class ClusterAddressUnusable extends Schema.TaggedError<ClusterAddressUnusable>()(
  "ClusterAddressUnusable",
  { address: Schema.String, problem: Schema.String }
) {
  override get message(): string {
    return `CLUSTER_ADDRESS ${this.address} cannot be used (${this.problem})`
  }
}

/** This process among the others of a cluster: one address, at which each room serves protocols of its own. */
export class Cluster extends Context.Service<
  Cluster,
  {
    readonly member: ClusterMember
    readonly transport: ClusterTransport
    /** Serves a protocol, such as `signalbox-relay`, while it runs. A name is served once. */
    readonly serverOf: (protocol: string) => SocketServer["Service"]
  }
>()("signalbox/Cluster") {
  /** For a process with `CLUSTER_ADDRESS`; without one it is a defect. */
  static readonly layer = Layer.effect(
    Cluster,
    Effect.gen(function* () {
      const { cluster: member, limits } = yield* AppConfig
      if (member === undefined) return yield* Effect.die(new Error("CLUSTER_ADDRESS is not set"))
      const transport = new ClusterTransport(Redacted.value(member.secret), limits.clusterHandshakeMillis)
      const serverOf = yield* Effect.mapError(transport.listen(member), ({ cause }) => {
        const problem = cause instanceof Error ? cause.message : String(cause)
        return new ClusterAddressUnusable({ address: `${member.host}:${member.port}`, problem })
      })
      return { member, transport, serverOf }
    })
  )
}

import { Deferred, Effect, Exit, Scope, Stream } from "effect"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket/Socket"
import type { Limits } from "#src/Limits.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { ClusterAddress, ClusterTransport } from "#src/infra/cluster/ClusterTransport.ts"
import { RelayLink } from "./RelayLink.ts"
import { RelayRpcs } from "./RelayRpcs.ts"

/** The link could not be made, or is over. */
class NoLink extends Error {}

/**
 * The links of this machine to others: one to each, made when a client first needs it, and kept. A link that breaks ends
 * the sockets of its clients; the next client makes another.
 */
export class RelayLinks {
  private readonly links = new Map<string, Deferred.Deferred<RelayLink, NoLink>>()
  private readonly transport: ClusterTransport
  private readonly limits: Limits
  private readonly scope: Scope.Scope
  private readonly serialization: RpcSerialization.RpcSerialization["Service"]

  constructor(
    transport: ClusterTransport,
    limits: Limits,
    scope: Scope.Scope,
    serialization: RpcSerialization.RpcSerialization["Service"]
  ) {
    this.transport = transport
    this.limits = limits
    this.scope = scope
    this.serialization = serialization
  }

  /** The link to a machine. */
  to(address: ClusterAddress): Effect.Effect<RelayLink, NoLink> {
    return Effect.suspend(() => {
      const name = `${address.host} ${address.port}`
      const known = this.links.get(name)
      if (known !== undefined) return Deferred.await(known)
      const made = Deferred.makeUnsafe<RelayLink, NoLink>()
      this.links.set(name, made)
      return this.run(address, made).pipe(
        Effect.ensuring(
          Effect.suspend(() => {
            this.links.delete(name)
            return Deferred.fail(made, new NoLink())
          })
        ),
        Effect.forkIn(this.scope),
        Effect.andThen(Deferred.await(made))
      )
    })
  }

  /** Makes a link and keeps it until it breaks. */
  private run(address: ClusterAddress, made: Deferred.Deferred<RelayLink, NoLink>) {
    const name = newId("lnk")
    const link = new RelayLink(this.limits)
    return Effect.gen({ self: this }, function* () {
      const protocol = yield* RpcClient.makeProtocolSocket().pipe(
        Effect.provideServiceEffect(Socket, this.transport.connect("signalbox-relay", address)),
        Effect.provideService(RpcSerialization.RpcSerialization, this.serialization)
      )
      const client = yield* RpcClient.make(RelayRpcs, { disableTracing: true }).pipe(
        Effect.provideService(RpcClient.Protocol, protocol)
      )
      const incoming = Stream.runForEachArray(client.Link({ link: name }), (items) => {
        link.apply(items)
        return Deferred.succeed(made, link)
      })
      const outgoing = Effect.andThen(
        Deferred.await(made),
        Effect.forever(Effect.flatMap(link.outbox.take, (items) => client.Push({ link: name, items })))
      )
      const opened = Effect.timeout(Deferred.await(made), this.limits.clusterFindMillis)
      yield* Effect.all([incoming, outgoing, Effect.andThen(opened, Effect.never)], { concurrency: 3 })
    }).pipe(
      Effect.scoped,
      Effect.tapCause((cause) => Effect.logDebug("A link to another machine is over", cause)),
      Effect.ensuring(Effect.sync(() => link.end())),
      Effect.exit,
      Effect.map(Exit.asVoid)
    )
  }
}

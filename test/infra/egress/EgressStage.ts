import { createServer, type Server } from "node:http"
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server as TcpServer,
  type Socket
} from "node:net"
import { networkInterfaces } from "node:os"
import { it } from "@effect/vitest"
import { Effect, Layer, Result, type Scope } from "effect"
import { Dns, NetAddress } from "effect/net"
import { HttpReceiver } from "#test/harness/HttpReceiver.ts"
import { AppConfig } from "#src/Config.ts"
import { Egress, EgressSystem } from "#src/infra/egress/Egress.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import type { Interfaces } from "#src/infra/egress/Reachability.ts"
import type { Limits } from "#src/Limits.ts"

/** The addresses of a name, for each time that it is asked for; after the last they stay. */
export type Names = Readonly<Record<string, ReadonlyArray<ReadonlyArray<string>>>>

/** Looks names up in a table, and keeps what it was asked. */
export class TestNames {
  readonly asked: Array<string> = []
  readonly #names: Names
  readonly #times = new Map<string, number>()

  constructor(names: Names = {}) {
    this.#names = names
  }

  get dns(): Dns.Dns["Service"] {
    const notFound = (method: "lookup" | "resolve", hostname: string) =>
      Effect.fail(new Dns.DnsError({ reason: "NotFound", method, hostname }))
    return Dns.make({
      lookup: (host) =>
        Effect.suspend(() => {
          this.asked.push(host)
          const found = host === "localhost" ? ["127.0.0.1", "::1"] : this.#next(host, host)
          return found.length === 0 ? notFound("lookup", host) : Effect.succeed(addressesOf(found))
        }),
      resolve: (name, type) =>
        Effect.suspend(() => {
          this.asked.push(`${name} ${type}`)
          const found = addressesOf(this.#next(name, `${name} ${type}`)).filter((address) =>
            NetAddress.isFamily(address, type === "A" ? "IPv4" : "IPv6")
          )
          if (found.length === 0) return notFound("resolve", name)
          return Effect.succeed(
            found.map((address) =>
              NetAddress.isIpv4Address(address)
                ? Dns.makeRecordUnsafe("A", { address })
                : Dns.makeRecordUnsafe("AAAA", { address })
            )
          )
        })
    })
  }

  #next(name: string, question: string): ReadonlyArray<string> {
    const answers = this.#names[name] ?? []
    const times = this.#times.get(question) ?? 0
    this.#times.set(question, times + 1)
    return answers[Math.min(times, answers.length - 1)] ?? []
  }
}

const addressesOf = (texts: ReadonlyArray<string>): ReadonlyArray<NetAddress.IpAddress> =>
  texts.map((text) => Result.getOrThrow(NetAddress.ipFromString(text)))

export interface StageOptions {
  /** EGRESS_ALLOW */
  readonly allow?: string
  readonly names?: TestNames
  readonly dns?: Dns.Dns["Service"]
  readonly limits?: Partial<Limits>
  readonly interfaces?: Interfaces
  readonly certificates?: string
}

/** Egress as the server has it, over a table of names. */
export const egressOf = ({
  allow,
  certificates,
  dns,
  interfaces = networkInterfaces,
  limits = {},
  names
}: StageOptions) => {
  const egressAllow = allow === undefined ? EgressAllow.nothing : EgressAllow.parse(allow)
  if (egressAllow === undefined) throw new Error(`EGRESS_ALLOW does not take ${allow}`)
  const system = { interfaces, ...(certificates === undefined ? {} : { certificates }) }
  return Egress.layerOverDns.pipe(
    Layer.provide(Layer.succeed(Dns.Dns, dns ?? (names ?? new TestNames()).dns)),
    Layer.provide(Layer.succeed(EgressSystem, system)),
    Layer.provide(AppConfig.layerOf({ egressAllow, limits: { egressLogPerMinute: 0, ...limits } }))
  )
}

/** An HTTP server on loopback that reacts as it is told. */
export const receiving = Effect.acquireRelease(
  Effect.promise(() => HttpReceiver.start()),
  (receiver) => Effect.promise(() => receiver.close())
)

const listening = <S extends Server | TcpServer>(server: S, host: string, port = 0) =>
  Effect.callback<S, Error>((resume) => {
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, host, () => resume(Effect.succeed(server)))
  })

/** A server of raw sockets, for answers that no HTTP server gives; its port. */
export const rawServer = (
  onSocket: (socket: Socket) => void,
  { host = "127.0.0.1", port = 0 }: { readonly host?: string; readonly port?: number } = {}
) => {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => socket.destroy()).once("close", () => sockets.delete(socket))
    // Only read to its end it is told of it.
    socket.resume()
    onSocket(socket)
  })
  return Effect.acquireRelease(Effect.orDie(listening(server, host, port)), () =>
    Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  ).pipe(Effect.map((server) => ({ port: (server.address() as AddressInfo).port, sockets })))
}

/** An HTTP server on every address of this machine, which keeps the addresses at which it was reached. */
export const everywhere = Effect.gen(function* () {
  const reachedAt: Array<string> = []
  const server = createServer((_, response) => void response.end("reached"))
  server.on("connection", ({ localAddress = "" }) => reachedAt.push(localAddress.replace("::ffff:", "")))
  yield* Effect.acquireRelease(Effect.orDie(listening(server, "::")), () =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
  )
  return { port: (server.address() as AddressInfo).port, reachedAt }
})

/** A test with a scope, in real time. */
export const test = (name: string, body: Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(name, () => Effect.scoped(body))

/** Runs with an Egress of its own. */
export const withEgress = <A, E, R>(
  options: StageOptions,
  use: (egress: Egress["Service"]) => Effect.Effect<A, E, R>
) => Effect.flatMap(Egress, use).pipe(Effect.provide(egressOf(options)))

/** How a result failed: its reason or kind; or that it did not. */
export const reasonOf = (exit: Result.Result<unknown, { readonly _tag: string }>): string => {
  if (Result.isSuccess(exit)) return "reached"
  const error = exit.failure
  return "reason" in error ? String(error.reason) : "kind" in error ? String(error.kind) : error._tag
}

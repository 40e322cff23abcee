import { Effect, Stream } from "effect"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { Limits } from "#src/Limits.ts"
import type { Serve } from "../SessionPlacement.ts"
import { RemoteClient } from "./RemoteClient.ts"
import { Outbox } from "./Outbox.ts"
import { LinkGone, type ToClient, type ToHome } from "./RelayRpcs.ts"

/** The part of a home that a link needs. */
export interface Home {
  readonly isHere: (sessionId: string) => boolean
  /** undefined until the gateway has opened */
  readonly serve: () => Serve | undefined
}

interface Link {
  readonly outbox: Outbox<ToClient>
  readonly clients: Map<number, RemoteClient>
}

/** RFC 6455, 7.4.1: an unexpected condition */
const internalError = 1011

/** The home's side of the links that other machines have made: serves their clients as those of sockets of its own. */
export class RelayHome {
  private readonly links = new Map<string, Link>()
  private readonly home: Home
  private readonly limits: Limits

  constructor(home: Home, limits: Limits) {
    this.home = home
    this.limits = limits
  }

  /** The number of clients of other machines. */
  get clients(): number {
    let clients = 0
    for (const link of this.links.values()) clients += link.clients.size
    return clients
  }

  /** Items that go back over a link, until the other machine is gone; then its clients are gone too. */
  readonly link = (name: string): Stream.Stream<ToClient> =>
    Stream.unwrap(
      Effect.acquireRelease(
        Effect.sync(() => this.opened(name)),
        (link) => Effect.sync(() => this.ended(name, link))
      ).pipe(Effect.map(({ outbox }) => Stream.fromPull(Effect.succeed(outbox.take))))
    )

  /** Takes items that came over a link, in order. */
  readonly push = (name: string, items: ReadonlyArray<ToHome>): Effect.Effect<void, LinkGone> =>
    Effect.suspend(() => {
      const link = this.links.get(name)
      if (link === undefined) return Effect.fail(new LinkGone({ link: name }))
      const faults: Array<unknown> = []
      for (const item of items) {
        try {
          this.apply(link, item)
        } catch (fault) {
          // As with a socket of this process: a report in the log, and the end of this client.
          faults.push(fault)
          link.clients.get(item.relay)?.close(internalError, "")
        }
      }
      return Effect.forEach(faults, (fault) => Effect.logError("A relayed agent client was dropped", fault), {
        discard: true
      })
    })

  private opened(name: string): Link {
    const link: Link = { outbox: new Outbox(this.limits.clusterBatchBytes), clients: new Map() }
    link.outbox.add({ _tag: "Linked" }, 0)
    this.links.set(name, link)
    return link
  }

  private ended(name: string, link: Link): void {
    this.links.delete(name)
    for (const client of link.clients.values()) client.closed(1006)
  }

  private apply(link: Link, item: ToHome): void {
    if (item._tag === "Open") return this.open(link, item)
    const client = link.clients.get(item.relay)
    if (item._tag === "Frame") client?.received(item.text)
    else if (item._tag === "Taken") client?.taken(item.bytes)
    else client?.closed(item.code)
  }

  private open(link: Link, { key, relay, sessionId }: Extract<ToHome, { _tag: "Open" }>): void {
    const client = new RemoteClient(relay, link.outbox, this.limits.clusterWaitingBytes, () =>
      link.clients.delete(relay)
    )
    link.clients.set(relay, client)
    const serve = this.home.serve()
    // The session moved while its client was on the way here: the client has to ask again.
    if (serve === undefined || !this.home.isHere(sessionId)) client.close(closeCodes.restart, "moved")
    else client.listener = serve(key, client)
  }
}

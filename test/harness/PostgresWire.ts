import { Effect, type Scope } from "effect"
import { afterAll } from "vitest"
import { wireTo } from "./ServerStores.ts"
import type { TcpProxy } from "./TcpProxy.ts"

export interface PostgresWire extends Pick<TcpProxy, "breakWire" | "mend"> {
  /** Opens the wire to this database and answers the URL through it, as TestServer.own and TestStores.layerWith take it. */
  readonly wire: (databaseUrl: string) => Promise<string>
  /** Likewise, but the layer itself does not pass the wire. */
  readonly beside: (databaseUrl: string) => Promise<string>
  /** the URL through the open wire */
  readonly url: () => string
  /** Loses the connections that are open now. */
  readonly lose: Effect.Effect<void>
  /** Breaks the wire until the test mends it, or ends. */
  readonly cut: (way: Parameters<TcpProxy["breakWire"]>[0]) => Effect.Effect<void, never, Scope.Scope>
}

/** The wire of one test file to its database, closed after its tests. */
export const postgresWire = (): PostgresWire => {
  let open: Awaited<ReturnType<typeof wireTo>> | undefined
  const opened = () => {
    if (open === undefined) throw new Error("the wire is open once the stores of the test are")
    return open
  }
  const wire = async (databaseUrl: string) => (open = await wireTo(databaseUrl, 5432)).url
  const breakWire: TcpProxy["breakWire"] = (way) => opened().wire.breakWire(way)
  const mend = () => opened().wire.mend()
  afterAll(() => open?.wire.close())
  return {
    wire,
    beside: async (databaseUrl) => {
      await wire(databaseUrl)
      return databaseUrl
    },
    url: () => opened().url,
    breakWire,
    mend,
    lose: Effect.sync(() => opened().wire.lose()),
    cut: (way) =>
      Effect.acquireRelease(
        Effect.sync(() => breakWire(way)),
        () => Effect.sync(mend)
      )
  }
}

import { Clock, Context, Effect, Layer, ManagedRuntime, Metric, Predicate, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import type { AppConfig, ConfigChanges } from "#src/Config.ts"
import type { OpenBlobFile } from "#src/infra/blobs/BlobFiles.ts"
import { OpenFile } from "#src/infra/blobs/BlobStore.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import type { Room } from "#src/Room.ts"
import { rooms } from "#src/Rooms.ts"
import * as Server from "#src/Server.ts"
import type { Counting } from "./ApiClient.ts"
import { TestStores } from "./TestStores.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** the decoded JSON; undefined where the body is none */
  readonly json: unknown
}

export interface Asked {
  /** the bearer key; the administrator's where absent, none where "" */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: NonNullable<RequestInit["body"]>
}

export interface Person {
  readonly id: string
  /** an account key of theirs */
  readonly key: string
}

/** The whole server over real stores, in this process, and a client that asks it over HTTP. */
export class TestServer extends Context.Service<
  TestServer,
  {
    readonly url: string
    readonly port: number
    readonly adminKey: string
    /** as functions of promises want it */
    readonly server: Counting
    readonly ask: (method: string, path: string, asked?: Asked) => Effect.Effect<Answer>
    /** a key made by the API: its secret and its id */
    readonly makeKey: (
      fields?: object,
      by?: string
    ) => Effect.Effect<{ readonly id: string; readonly key: string }>
    readonly makeUser: (role?: "user" | "admin") => Effect.Effect<Person>
    /** the log so far, one JSON object a line */
    readonly logged: () => ReadonlyArray<string>
    /** stops the server's wall clock at an instant, or lets it go on; timers go on in any case */
    readonly stopClockAt: (millis: number | undefined) => void
  }
>()("signalbox/test/TestServer") {
  /** A server with stores of its own: for settings, for clocks, and for tests that break something or count everything. */
  static readonly own = (changes: ConfigChanges = {}, outside: Outside = {}) => {
    const lines: Array<string> = []
    const clock = new StoppableClock(outside.isShared === true)
    const list = outside.rooms ?? rooms
    const named = new Set(list.map(({ name }) => name))
    return Layer.effect(TestServer, make(lines, clock)).pipe(
      Layer.provideMerge(Server.layerOf(list)),
      Layer.provideMerge(Layer.effectDiscard(Effect.scoped(outside.before ?? Effect.void))),
      Layer.provideMerge(
        TestStores.layerWith(
          {
            rooms: named,
            mailDomains,
            ...changes,
            limits: { ...patient, ...(outside.wire === undefined && nearStores), ...changes.limits }
          },
          outside.wire
        )
      ),
      Layer.provideMerge(Log.layer(changes.logLevel ?? "Info", (line) => void lines.push(line))),
      Layer.provideMerge(outside.open === undefined ? Layer.empty : Layer.succeed(OpenFile, outside.open)),
      Layer.provideMerge(clock.layer),
      // The process has one registry, and a server that ends takes its metrics out of it: another's of the same names too.
      Layer.provideMerge(Layer.sync(Metric.MetricRegistry, () => new Map()))
    )
  }

  /**
   * The server of this worker, with the default settings, started once for all files that use it. Its stores have what
   * other files left there, so a test makes the users, sites and keys that it looks at, and changes nothing that is
   * everybody's. Its clock cannot be stopped.
   */
  static readonly shared = Layer.effectContext(Effect.promise(() => sharedContext()))
}

type OwnServices = Layer.Success<ReturnType<typeof TestServer.own>>

/** The global key of this worker's shared server: modules of tests are loaded again in every isolated file. */
let shared: Promise<Context.Context<OwnServices>> | undefined

const sharedContext = (): Promise<Context.Context<OwnServices>> => {
  shared ??= ManagedRuntime.make(TestServer.own({}, { isShared: true })).context()
  return shared
}

/** The worker's server, for tests that are written as promises. */
export const sharedServer = async (): Promise<typeof TestServer.Service> =>
  Context.get(await sharedContext(), TestServer)

/** The parts that a test may put between the server and the machine. */
export interface Outside {
  /** in place of all rooms; `ROOMS` has to name them too */
  readonly rooms?: ReadonlyArray<Room>
  /** the disk, for account files */
  readonly open?: OpenBlobFile
  /** the wire to Postgres: the URL that the server is to have, from the real one */
  readonly wire?: (databaseUrl: string) => Promise<string>
  /** the files in DATA_DIR when the server starts */
  readonly before?: Effect.Effect<void, never, AppConfig | Scope.Scope>
  /** other files use the server too: its clock must not be stopped */
  readonly isShared?: boolean
}

/**
 * A test that means no rate limit meets none, on a busy machine a read waits for what it is to show, and what is deleted goes
 * at once.
 */
const patient = {
  ratePerMinute: 1_000_000,
  rateBurst: 1_000_000,
  signInsPerMinute: 1_000_000,
  joinsPerHour: 1_000_000,
  channelTestsPerHour: 1_000_000,
  settingsRequestsPerMinute: 1_000_000,
  cliLoginsPerMinute: 1_000_000,
  cliLoginPollsPerMinute: 1_000_000,
  readWaitMillis: 60_000,
  purgeDelayMillis: 0
}

/** Domains of mail are looked up at a port of this machine where nothing listens. */
const mailDomains = {
  spf: [],
  bounceDomain: undefined,
  hostname: undefined,
  fromDomains: new Set<string>(),
  nameServers: ["127.0.0.1:9"]
}

/** The event loop of a busy machine stands still for seconds while a server starts, and its connections with it. */
const nearStores = { postgresConnectMillis: 60_000 }

class StoppableClock {
  private stoppedAt: number | undefined
  private readonly isShared: boolean
  constructor(isShared: boolean) {
    this.isShared = isShared
  }
  stopAt(millis: number | undefined): void {
    if (this.isShared) throw new Error("a shared server's clock goes on: use TestServer.own()")
    this.stoppedAt = millis
  }
  readonly layer = Layer.effect(
    Clock.Clock,
    Effect.clockWith((real) => {
      const now = (): number => this.stoppedAt ?? real.currentTimeMillisUnsafe()
      const clock: Clock.Clock = Object.assign(Object.create(real), {
        currentTimeMillis: Effect.sync(now),
        currentTimeMillisUnsafe: now
      })
      return Effect.succeed(clock)
    })
  )
}

const make = Effect.fnUntraced(function* (lines: ReadonlyArray<string>, clock: StoppableClock) {
  const { address } = yield* HttpServer.HttpServer
  const { newAdminKey: adminKey = "" } = yield* FirstBoot
  const { clickhouseUrl } = yield* TestStores
  const port = Predicate.hasProperty(address, "port") ? Number(address.port) : 0
  const url = `http://127.0.0.1:${port}`

  const ask = (method: string, path: string, asked: Asked = {}): Effect.Effect<Answer> =>
    Effect.promise(async () => {
      const key = asked.key ?? adminKey
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
          ...(asked.json === undefined ? {} : { "content-type": "application/json" }),
          ...asked.headers
        },
        body: asked.json === undefined ? (asked.body ?? null) : JSON.stringify(asked.json)
      })
      const bytes = new Uint8Array(await response.arrayBuffer())
      const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
      const json: unknown = isJson && bytes.length > 0 ? JSON.parse(Buffer.from(bytes).toString()) : undefined
      return { status: response.status, headers: response.headers, bytes, json }
    })

  let people = 0
  const makeKey = (fields: object = {}, by: string = adminKey) =>
    Effect.map(
      ask("POST", "/api/v1/keys", { key: by, json: { name: "test", kind: "account", ...fields } }),
      (answer) => ({ id: textOf(answer, "id"), key: textOf(answer, "key") })
    )
  return {
    url,
    port,
    adminKey,
    server: { url, adminKey: () => adminKey, clickhouseUrl: () => clickhouseUrl },
    logged: () => lines,
    stopClockAt: (millis: number | undefined) => clock.stopAt(millis),
    ask,
    makeKey,
    makeUser: (role: "user" | "admin" = "user") =>
      Effect.gen(function* () {
        const email = `person-${++people}@example.org`
        const made = yield* ask("POST", "/api/v1/admin/users", {
          json: { email, name: `Person ${people}`, role }
        })
        const id = textOf(made, "id")
        const { key } = yield* makeKey({ user_id: id })
        return { id, key }
      })
  }
})

/** A text of an answer's JSON object; fails where there is none. */
export const textOf = ({ json, status }: Answer, name: string): string => {
  const value = Predicate.hasProperty(json, name) ? json[name] : undefined
  if (!Predicate.isString(value)) throw new Error(`no text ${name} in ${status} ${JSON.stringify(json)}`)
  return value
}

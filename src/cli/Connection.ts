import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Context, Effect, Layer, Predicate, Runtime, Schema } from "effect"
import { CliError } from "effect/cli"
import { FetchHttpClient, HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Problem } from "#schemas/core/Problem.ts"
import { PublishedApi } from "#src/PublishedApi.ts"
import { exitCodes } from "#src/clients/ExitCodes.ts"
import { fieldFault } from "#schemas/core/FieldFault.ts"
import { readLogin } from "./LoginFile.ts"

/** No server is known: EX_CONFIG of sysexits.h. */
export class ServerUnknown extends Schema.TaggedError<ServerUnknown>()("ServerUnknown", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.configuration
  override get [CliError.userMessage](): string {
    return `${this.problem} Start a server with \`npm start\`, log in to one with \`signalbox login\`, or set SIGNALBOX_URL and SIGNALBOX_KEY.`
  }
}

/** The server did not answer: EX_UNAVAILABLE. */
export class ServerUnreachable extends Schema.TaggedError<ServerUnreachable>()("ServerUnreachable", {
  url: Schema.String,
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.serverAway
  override get [CliError.userMessage](): string {
    return `No answer from ${this.url}: ${this.problem}`
  }
}

/** The server does not take the key: EX_NOPERM. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  text: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.keyRefused
  override get [CliError.userMessage](): string {
    return this.text
  }
}

/** The server answered with an error, which is shown in its own words. */
export class RequestRefused extends Schema.TaggedError<RequestRefused>()("RequestRefused", {
  text: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.failed
  override get [CliError.userMessage](): string {
    return this.text
  }
}

export interface Target {
  /** origin, without a trailing slash */
  readonly url: string
  /** "": none, for requests that need none */
  readonly key: string
}

const AdminFile = Schema.fromJsonString(
  Schema.Struct({ url: Schema.String, adminKey: Schema.optionalKey(Schema.String) })
)

const readAdminFile = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    if (Predicate.hasProperty(error, "code") && error.code === "ENOENT") return undefined
    throw error
  }
}

const adminFile = (): string =>
  join(resolve(process.env["DATA_DIR"] ?? join(import.meta.dirname, "../../.data")), "admin.json")

/** The values in DATA_DIR/admin.json from the server's last start; undefined: there is none. */
const findAdmin = Effect.gen(function* () {
  const file = adminFile()
  const content = yield* Effect.try({
    try: () => readAdminFile(file),
    catch: (error) => new ServerUnknown({ problem: `${file} cannot be read: ${String(error)}` })
  })
  if (content === undefined) return undefined
  const { adminKey: key, url } = yield* Effect.mapError(
    Schema.decodeEffect(AdminFile)(content),
    () => new ServerUnknown({ problem: `${file} is not what a server writes` })
  )
  return { url, key }
})

const findLogin = Effect.mapError(readLogin, ({ problem }) => new ServerUnknown({ problem }))

const origin = (url: string): string => url.replace(/\/+$/, "")

const isServer = (url: string): boolean => /^https?:$/.test(URL.parse(url)?.protocol ?? "")

/**
 * SIGNALBOX_URL and SIGNALBOX_KEY, else those of `signalbox login`, else those in DATA_DIR/admin.json, which goes first
 * where DATA_DIR is set. Source: contract/start#command-line.
 */
const findTarget: Effect.Effect<Target, ServerUnknown> = Effect.gen(function* () {
  const { DATA_DIR: dataDir, SIGNALBOX_KEY: key, SIGNALBOX_URL: url } = process.env
  const given =
    dataDir === undefined && !(url !== undefined && key !== undefined) ? yield* findLogin : undefined
  // A key is sent to no other server than the one that made it.
  const isOfServer = ({ url: own }: { readonly url: string }) =>
    url === undefined || origin(url) === origin(own)
  const login = given !== undefined && isOfServer(given) ? given : undefined
  const written = login ?? (yield* findAdmin)
  if (key === undefined && url !== undefined && written !== undefined && !isOfServer(written))
    return yield* new ServerUnknown({
      problem: `${adminFile()} is of the server ${written.url}, and its key is not sent to ${url}.`
    })
  const target = { url: url ?? written?.url, key: key ?? written?.key }
  if (target.url === undefined || target.key === undefined) {
    const problem =
      written === undefined
        ? `There is no ${adminFile()}.`
        : `${adminFile()} names no key that works; \`signalbox admin key --new\` makes one.`
    return yield* new ServerUnknown({ problem })
  }
  if (!isServer(target.url))
    return yield* new ServerUnknown({ problem: `${target.url} is not the address of a server.` })
  // Where fetch does not take a header, its error has the whole key.
  if (!/^[\x21-\x7e]*$/.test(target.key)) {
    const source = key === undefined ? "The key of this server" : "SIGNALBOX_KEY"
    return yield* new ServerUnknown({
      problem: `${source} has a character that no key has, such as a line break.`
    })
  }
  return { url: origin(target.url), key: target.key }
})

/** The server to log in to: the one that is given, SIGNALBOX_URL, or the one that the command line would ask. */
export const findServer = (given: string | undefined): Effect.Effect<string, ServerUnknown> =>
  Effect.gen(function* () {
    const url = given ?? process.env["SIGNALBOX_URL"] ?? (yield* findLogin)?.url ?? (yield* findAdmin)?.url
    if (url === undefined) return yield* new ServerUnknown({ problem: "No server is named." })
    if (!isServer(url)) return yield* new ServerUnknown({ problem: `${url} is not the address of a server.` })
    return origin(url)
  })

const makeClient = (target: Target) =>
  HttpApiClient.make(PublishedApi, {
    baseUrl: target.url,
    transformClient: HttpClient.mapRequest(
      target.key === "" ? (request) => request : HttpClientRequest.bearerToken(target.key)
    )
  })

export type Client = Effect.Success<ReturnType<typeof makeClient>>

/** The root cause of an error: `fetch failed` alone explains nothing. */
export const rootOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined) return rootOf(error.cause)
  if (!(error instanceof Error)) return String(error)
  // An AggregateError (a name with several addresses) has a code but no message.
  return error.message === "" && Predicate.hasProperty(error, "code") ? String(error.code) : error.message
}

const explain = (target: Target, error: unknown): Exclude<ConnectionFailure, ServerUnknown> => {
  if (error instanceof Problem) {
    const text = error.message
    return error.status === 401 ? new KeyRefused({ text }) : new RequestRefused({ text })
  }
  if (HttpClientError.isHttpClientError(error)) {
    return error.response === undefined
      ? new ServerUnreachable({ url: target.url, problem: rootOf(error) })
      : new RequestRefused({ text: `The server answered ${error.response.status}` })
  }
  if (Schema.isSchemaError(error)) {
    const { field, text } = fieldFault({ cause: error })
    return new RequestRefused({ text: `${field}: ${text}` })
  }
  return new RequestRefused({ text: `The answer was not understood: ${String(error)}` })
}

/** Why the server's answer is not there. */
export type ConnectionFailure = ServerUnknown | ServerUnreachable | KeyRefused | RequestRefused

/** The server of the command line. It is looked for at the first request, so that help needs none. */
export class Connection extends Context.Service<
  Connection,
  {
    readonly target: Effect.Effect<Target, ServerUnknown>
    readonly ask: <A, E>(
      request: (client: Client) => Effect.Effect<A, E>
    ) => Effect.Effect<A, ConnectionFailure>
    /** of another server, or by another key */
    readonly askOf: (
      target: Target
    ) => <A, E>(
      request: (client: Client) => Effect.Effect<A, E>
    ) => Effect.Effect<A, Exclude<ConnectionFailure, ServerUnknown>>
  }
>()("signalbox/cli/Connection") {
  static readonly layer = Layer.effect(
    Connection,
    Effect.gen(function* () {
      const target = yield* Effect.cached(findTarget)
      const http = yield* HttpClient.HttpClient
      const askOf: Connection["Service"]["askOf"] = (found) => (request) =>
        makeClient(found).pipe(
          Effect.provideService(HttpClient.HttpClient, http),
          Effect.flatMap(request),
          Effect.mapError((error) => explain(found, error))
        )
      return { target, askOf, ask: (request) => Effect.flatMap(target, (found) => askOf(found)(request)) }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}

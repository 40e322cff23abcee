import type { Readable } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Predicate, type Scope } from "effect"
import { Agent, type Dispatcher, errors, type FormData } from "undici"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { KeyRefused, RequestRefused, rootOf, ServerUnreachable, ServerUnknown } from "#src/cli/Connection.ts"

/** Requests at once to a server. */
export const atOnce = 4

/** without a byte in either direction */
const silenceMillis = 120_000
const connectMillis = 10_000
const errorBytesMax = 64 * 1024
const errorCharacters = 1_000

/** the pauses between tries of which none got on: a tenth of a second, doubled up to half a minute */
const firstPauseMillis = 100
const lastPauseMillis = 30_000
/** above it the server is not waited for */
const patienceSeconds = 60

export type Headers = Readonly<Record<string, string>>

export interface Asked {
  readonly method: Dispatcher.HttpMethod
  readonly url: string
  readonly headers: Headers
  /** a form tells its length itself; the length of others is in `content-length` */
  readonly body?: FormData | Readable
}

/** An answer, whose body is to be read or thrown away. */
export interface Answer {
  readonly status: number
  /** "" when absent */
  readonly header: (name: string) => string
  readonly body: Readable
}

/** The connection was cut, or there was none. It may be worth another try. */
export class ConnectionCut extends Error {
  override readonly name = "ConnectionCut"
}

/** The failures of commands that move bytes. */
export type BytesFailure = CommandFailed | KeyRefused | RequestRefused | ServerUnreachable | ServerUnknown

const isFailure = (error: unknown): error is BytesFailure =>
  error instanceof CommandFailed ||
  error instanceof KeyRefused ||
  error instanceof RequestRefused ||
  error instanceof ServerUnreachable ||
  error instanceof ServerUnknown

/** Work that throws `BytesFailure`s; what else it throws is a fault of this machine, such as a full disk. */
export const bytesWork = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, BytesFailure> =>
  Effect.tryPromise({
    try: work,
    catch: (error) => (isFailure(error) ? error : new CommandFailed({ problem: rootOf(error) }))
  })

/** Requests whose bodies are moved piece by piece. */
export class ByteClient {
  readonly #agent = new Agent({
    connections: 2 * atOnce,
    headersTimeout: silenceMillis,
    bodyTimeout: silenceMillis,
    connect: { timeout: connectMillis }
  })

  static readonly make: Effect.Effect<ByteClient, never, Scope.Scope> = Effect.acquireRelease(
    Effect.sync(() => new ByteClient()),
    (client) => Effect.promise(() => client.#agent.destroy())
  )

  /** Throws `ConnectionCut`. */
  async ask({ body, headers, method, url }: Asked, signal: AbortSignal): Promise<Answer> {
    const { origin, pathname, search } = new URL(url)
    const answer = await this.#agent
      .request({
        origin,
        path: pathname + search,
        method,
        headers,
        signal,
        ...(body !== undefined && { body })
      })
      .catch((error: unknown) => {
        if (signal.aborted) throw error
        // A body that cannot be read is no fault of the connection.
        if (!isOfConnection(error)) throw error
        throw new ConnectionCut(rootOf(error), { cause: error })
      })
    return {
      status: answer.statusCode,
      header: (name) => {
        const value = answer.headers[name]
        return (Predicate.isString(value) ? value : value?.[0]) ?? ""
      },
      body: answer.body
    }
  }
}

const connectionCodes =
  /^(?:UND_ERR_|ECONN|EPIPE|EHOST|ENET|ENOTFOUND|EAI_|ETIMEDOUT|HPE_|CERT_|ERR_TLS|ERR_SSL)/

const isOfConnection = (error: unknown): boolean => {
  if (error instanceof errors.UndiciError) return true
  if (error instanceof AggregateError) return true
  if (!Predicate.hasProperty(error, "code") || !Predicate.isString(error.code)) return false
  return connectionCodes.test(error.code) || !Predicate.hasProperty(error, "path")
}

/** Waits, and the end of them. */
export interface Waiting {
  readonly signal: AbortSignal
  /** absent: in real time */
  readonly pause?: (millis: number) => Promise<void>
}

/** Pauses between tries, for as long as something comes now and then. */
export class Patience {
  readonly #url: string
  readonly #triesMost: number
  readonly #pause: (millis: number) => Promise<void>
  #tries = 0

  /** @param triesMost tries in sequence that get nowhere */
  constructor(url: string, { pause, signal }: Waiting, triesMost = 10) {
    this.#url = url
    this.#triesMost = triesMost
    this.#pause = pause ?? ((millis) => sleep(millis, undefined, { signal }))
  }

  progressed(): void {
    this.#tries = 0
  }

  /** Throws `ServerUnreachable` where it is over. */
  async wait(reason: string, askedSeconds = 0): Promise<void> {
    this.#tries++
    if (this.#tries >= this.#triesMost)
      throw new ServerUnreachable({ url: new URL(this.#url).origin, problem: reason })
    const pause = Math.min(lastPauseMillis, firstPauseMillis * 2 ** (this.#tries - 1))
    // So that those who were cut off together do not come back together.
    const spread = pause * (0.75 + Math.random() / 2)
    await this.#pause(Math.max(askedSeconds * 1000, spread))
  }
}

const wordsOf = (status: number, text: string): string => {
  try {
    const body: unknown = JSON.parse(text)
    if (Predicate.hasProperty(body, "error") && Predicate.isString(body.error))
      // A stranger's server does not steer the terminal.
      // oxlint-disable-next-line no-control-regex
      return body.error.slice(0, errorCharacters).replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd")
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return bodiless[status] ?? `The server answered ${status}`
}

/** Errors of bytes come without words. Source: contract/files#access. */
const bodiless: Readonly<Record<number, string>> = {
  401: "Invalid or missing API key",
  403: "The key's scopes do not cover this",
  404: "Not found",
  412: "It is another one by now",
  429: "Rate limit exceeded"
}

/** The words of an answer of 400 and more. */
export const refusalText = async ({ body, status }: Answer): Promise<string> => {
  let text = ""
  for await (const piece of body) {
    text += String(piece)
    if (text.length > errorBytesMax) break
  }
  return wordsOf(status, text)
}

const unauthorized = 401
const passing = new Set([408, 423, 425, 429, 502, 503, 504])

/** Waits after an answer of 400 and more where a later try may succeed; else throws `KeyRefused` or `RequestRefused`. */
export const refused = async (answer: Answer, patience: Patience): Promise<void> => {
  const { status } = answer
  const text = await refusalText(answer).catch(() => `The server answered ${status}`)
  if (status === unauthorized) throw new KeyRefused({ text })
  const seconds = Number(answer.header("retry-after"))
  if (!passing.has(status) || seconds > patienceSeconds) throw new RequestRefused({ text })
  await patience.wait(text, Number.isFinite(seconds) ? seconds : 0)
}

/** An answer below 300, or one of `taken`, after any number of tries. Nothing is followed elsewhere. */
export const accepted = async (
  ask: () => Promise<Answer>,
  patience: Patience,
  taken: ReadonlySet<number> = new Set()
): Promise<Answer> => {
  for (;;) {
    const answer = await ask().catch((error: unknown) => {
      if (error instanceof ConnectionCut) return error
      throw error
    })
    if (answer instanceof ConnectionCut) await patience.wait(answer.message)
    else if (answer.status < 300 || taken.has(answer.status)) return answer
    else await refused(answer, patience)
  }
}

/** Throws the rest of an answer away, so that its connection can be used again. */
export const discard = ({ body }: Answer): void => {
  body.on("error", () => undefined).resume()
}

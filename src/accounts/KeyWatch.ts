import { Context, Effect, Layer, Stream } from "effect"
import { HttpBody, HttpServerResponse } from "effect/http"
import { AppConfig } from "#src/Config.ts"
import { Credentials } from "./Credentials.ts"

/**
 * Ends long answers with the credential of their request: a key was revoked or has expired, a session has ended, or the
 * owner was deleted. Source: contract/accounts#keys.
 */
export class KeyWatch extends Context.Service<
  KeyWatch,
  {
    /** Calls `onEnd` once when the credential ends, unless the function that it answers was called before. */
    readonly watch: (id: string, onEnd: () => void) => () => void
  }
>()("signalbox/accounts/KeyWatch") {
  static readonly layer = Layer.effect(
    KeyWatch,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const credentials = yield* Credentials
      const watched = new Watched((id) => credentials.holder(id) !== undefined)
      const timer = setInterval(() => watched.look(), limits.keyWatchMillis)
      timer.unref()
      yield* Effect.addFinalizer(() => Effect.sync(() => clearInterval(timer)))
      return KeyWatch.of({ watch: (id, onEnd) => watched.add(id, onEnd) })
    })
  )
}

/** The answers that end with each key. Every watched answer has a limit where it is made. */
class Watched {
  readonly #isGood: (keyId: string) => boolean
  readonly #listeners = new Map<string, Set<() => void>>()

  constructor(isGood: (keyId: string) => boolean) {
    this.#isGood = isGood
  }

  add(keyId: string, onEnd: () => void): () => void {
    // A new function each time: callers may give the same one twice.
    const listener = () => onEnd()
    const listeners = this.#listeners.get(keyId) ?? new Set()
    this.#listeners.set(keyId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(keyId) === listeners) this.#listeners.delete(keyId)
    }
  }

  look(): void {
    for (const [keyId, listeners] of this.#listeners) {
      if (this.#isGood(keyId)) continue
      this.#listeners.delete(keyId)
      for (const listener of listeners) listener()
    }
  }
}

type Response = HttpServerResponse.HttpServerResponse

/**
 * The same answer, cut off when the key ends during its body: the status is already sent, so only the closed connection
 * tells the client that the body is incomplete.
 */
export const endingWithKey = (watch: KeyWatch["Service"], keyId: string, response: Response): Response => {
  const { body } = response
  if (body._tag !== "Stream") return response
  const watched = Stream.unwrap(
    // The fiber that writes the answer is stopped: it may be waiting for its client as well as for the next piece.
    Effect.withFiber((fiber) =>
      Effect.sync(() => {
        const stop = watch.watch(keyId, () => fiber.interruptUnsafe())
        return Stream.ensuring(body.stream, Effect.sync(stop))
      })
    )
  )
  return HttpServerResponse.setBody(response, HttpBody.stream(watched, body.contentType, body.contentLength))
}

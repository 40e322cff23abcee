import { Deferred, Effect, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Conflict } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import type { UploadRow } from "./Uploads.ts"
import { Uploads } from "./Uploads.ts"

/** A request that has an upload to itself, until a later one wants it. */
export interface UploadTurn {
  /** The upload as it is now that earlier requests have let go of it. */
  readonly upload: UploadRow
  /** Bytes come by this request: where a later one wants the upload they are ended. */
  readonly brings: (bytes: ComingBytes) => void
}

/** The bytes of a request, while they come. */
export interface ComingBytes {
  readonly stop: () => void
  /** for so long nothing has come */
  readonly quietMillis: () => number
}

/** To a request that a later one has ended. */
export const endedByLater = Conflict.of("Another request goes on with this upload", { code: "upload_taken" })

interface Mine {
  isWanted: boolean
  bytes: ComingBytes | undefined
  readonly ended: Deferred.Deferred<void>
}

/** How often a later request looks whether an earlier one has let go. */
const lookMillis = 50

/** Ends a request. Where its connection was cut, what had come by then is still being read. */
const want = Effect.fnUntraced(function* (mine: Mine, limits: Limits) {
  mine.isWanted = true
  const until = performance.now() + limits.uploadDrainMillis
  const comes = () => mine.bytes !== undefined && mine.bytes.quietMillis() < limits.uploadQuietMillis
  while (!Deferred.isDoneUnsafe(mine.ended) && comes() && performance.now() < until)
    yield* Effect.timeoutOption(Deferred.await(mine.ended), lookMillis)
  mine.bytes?.stop()
})

/** A place behind the last request of this process on the same upload. */
const inLine = (line: Map<string, Mine>, place: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = line.get(place)
      const mine: Mine = { isWanted: false, bytes: undefined, ended: Deferred.makeUnsafe() }
      line.set(place, mine)
      return { before, mine }
    }),
    ({ mine }) =>
      Effect.suspend(() => {
        if (line.get(place) === mine) line.delete(place)
        return Deferred.succeed(mine.ended, undefined)
      })
  )

/**
 * Turns of requests on uploads: a later one ends an earlier one, in this process or another, and begins where that has let go,
 * so that what came to it counts. One whose process is silent is not waited for.
 */
export const makeTurns = Effect.gen(function* () {
  const uploads = yield* Uploads
  const notices = yield* Notices
  const { limits } = yield* AppConfig
  const line = new Map<string, Mine>()
  const topicOf = (id: string): string => `upload:${id}`

  /** Waits for a request of another process, where that shows that it goes on. */
  const letGo = Effect.fnUntraced(function* <E>(read: Effect.Effect<UploadRow, E | SqlError>) {
    let upload = yield* read
    const isHeld = () => upload.isBusy && upload.idleMillis < 2 * limits.uploadRenewMillis
    if (!isHeld()) return upload
    yield* uploads.wantTurn(upload.id)
    yield* notices.publish(topicOf(upload.id))
    for (let waited = 0; isHeld() && waited < limits.uploadTurnMillis; waited += lookMillis) {
      yield* Effect.sleep(lookMillis)
      upload = yield* read
    }
    return upload
  })

  return <E>(
    userId: string,
    id: string,
    read: Effect.Effect<UploadRow, E | SqlError>
  ): Effect.Effect<UploadTurn, E | Conflict | SqlError, Scope.Scope> =>
    Effect.gen(function* () {
      const place = `${userId} ${id}`
      // A request is ended by those alone who may go on with the upload.
      if (line.has(place)) yield* read
      const { before, mine } = yield* inLine(line, place)
      if (before !== undefined) {
        yield* want(before, limits)
        yield* Deferred.await(before.ended)
      }
      if (mine.isWanted) return yield* endedByLater
      const upload = yield* letGo(read)
      const looked = Effect.flatMap(uploads.turnOf(id), (turn) =>
        turn === upload.turn ? Effect.void : want(mine, limits)
      )
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const look = Effect.catch(looked, (error) =>
        Effect.logDebug(`The upload ${id} is not looked at`, error)
      )
      yield* notices.subscribe(topicOf(id), () => void run(look))
      return {
        upload,
        brings: (bytes) => {
          mine.bytes = bytes
          if (mine.isWanted) bytes.stop()
        }
      }
    })
})

import { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { fileBytesMax } from "#schemas/notify/SendTerms.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import type { RawRequest } from "#src/front/RawRoute.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import type { PlainAnswer } from "#src/infra/mcp/McpEndpoint.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import type { SendFields } from "#streams/notify/SendFields.ts"
import { type AttachmentRow, Attachments, type NewAttachment } from "../attachments/Attachments.ts"
import { ProjectKeys } from "../projects/ProjectKeys.ts"
import { Sending } from "./Sending.ts"

/** A request that sends, whichever way it came. */
export interface Submission {
  readonly caller: Principal
  readonly request: RawRequest
  /** as it came */
  readonly idempotencyKey: string | undefined
}

/** The files that come with a send. */
export interface ArrivingFiles {
  /** those that were put */
  readonly count: number
  readonly put: <E>(
    file: Pick<NewAttachment, "contentType" | "declaredBytes" | "field" | "filename">,
    content: BlobSource<E>
  ) => Effect.Effect<unknown, E | Problem>
}

/** The outcome of a send. */
export type Submitted = Effect.Success<ReturnType<Sending["Service"]["send"]>>

/** Sends what `gather` reads and puts. Where that fails, or the same was sent before, no file of it is left. */
export const makeSubmit = Effect.gen(function* () {
  const attachments = yield* Attachments
  const keys = yield* ProjectKeys
  const sending = yield* Sending
  const { urlFor } = yield* RawServerUrl

  return <E>(
    { caller, idempotencyKey, request }: Submission,
    gather: (files: ArrivingFiles) => Effect.Effect<SendFields, E>
  ): Effect.Effect<Submitted, E | Problem> =>
    Effect.suspend(() => {
      const files: Array<AttachmentRow> = []
      const arriving: ArrivingFiles = {
        get count() {
          return files.length
        },
        put: (file, content) =>
          Effect.onExit(
            attachments.put(
              { ...file, ownerId: caller.ownerId, keyId: caller.id, maxBytes: fileBytesMax },
              content
            ),
            (exit) => Effect.sync(() => (exit._tag === "Success" ? files.push(exit.value) : 0))
          )
      }
      const discard = Effect.suspend(() =>
        files.length === 0 ? Effect.void : attachments.discard(files.map(({ id }) => id))
      )
      return Effect.gen(function* () {
        const fields = yield* gather(arriving)
        // Revoked while it came.
        const key = keys.ofPrincipal(caller)
        if (key === undefined) return yield* invalidKey()
        const serverUrl = yield* urlFor(request)
        const submitted = yield* sending.send({ key, fields, files, idempotencyKey, serverUrl })
        if (submitted.isReplay) yield* discard
        return submitted
      }).pipe(Effect.onError(() => discard))
    })
})

/** The answer of REST. */
export const sentAnswer = ({ isReplay, sent }: Submitted): PlainAnswer => ({
  status: 201,
  headers: isReplay ? [replayHeader] : [],
  body: JSON.stringify(sent)
})

export const replayHeader = ["Idempotent-Replay", "true"] as const

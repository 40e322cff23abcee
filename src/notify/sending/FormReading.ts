import { Effect, Result } from "effect"
import { invalidField, PayloadTooLarge, type Problem, RequestTimeout } from "#schemas/core/Problem.ts"
import { attachmentsMax, fileBytesMax } from "#schemas/notify/SendTerms.ts"
import type { RawBody } from "#src/front/RawRoute.ts"
import { type FormEvent, type FormFault, MultipartBody, type Part } from "#src/http/MultipartBody.ts"
import { GatheredBytes, type Reserve, tooMuch } from "#src/http/WholeBody.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { SendForm } from "#streams/notify/SendForm.ts"
import type { ArrivingFiles } from "./Submission.ts"

/** Parts of a form: a hundred projects, twenty files and ids, and some that are ignored. */
const partsMax = 256
/** The head of a part, which the parser bounds, and its boundary. */
const partHeadBytes = 20 * 1024

interface FormOptions {
  /** of all fields together */
  readonly maxBodyBytes: number
  /** the error of more */
  readonly tooLarge: string
  /** the largest file that is kept at all */
  readonly maxFileBytes: number
  readonly reserve: Reserve
}

/** The client has left: there is no one to answer. */
export type Gone = "gone"

const problemOf = (fault: FormFault, maxBytes: number): Problem | Gone => {
  switch (fault) {
    case "gone":
      return "gone"
    case "slow":
      return RequestTimeout.of("The request body arrives too slowly")
    case "tooLong":
      return PayloadTooLarge.of(`body: at most ${maxBytes} bytes`)
    case "malformed":
      return invalidField("body", "the form is cut off or malformed")
    case "tooManyParts":
      return invalidField("body", `more than ${partsMax} parts`)
  }
}

/** Reads a form that sends: its files are put as they come, its fields are answered. */
export const readForm = Effect.fnUntraced(function* (
  body: RawBody,
  contentType: string,
  files: ArrivingFiles,
  options: FormOptions
) {
  const maxBytes = options.maxBodyBytes + attachmentsMax * fileBytesMax + partsMax * partHeadBytes
  const form = new MultipartBody(body, contentType, { parts: partsMax, bytes: maxBytes })
  const next = Effect.flatMap(
    Effect.promise(() => form.next()),
    (event) =>
      event._tag === "Fault" ? Effect.fail(problemOf(event.fault, maxBytes)) : Effect.succeed(event)
  )
  const fields = new SendForm()
  let fieldBytes = 0

  const field = Effect.fnUntraced(function* ({ contentType, name }: Part) {
    const isKept = SendForm.takes(name)
    const gathered = new GatheredBytes(options.reserve, options.maxBodyBytes)
    for (;;) {
      const event = yield* next
      if (event._tag !== "Bytes") break
      fieldBytes += event.bytes.length
      if (fieldBytes > options.maxBodyBytes) return yield* PayloadTooLarge.of(options.tooLarge)
      if (isKept && !gathered.add(event.bytes)) return yield* tooMuch
    }
    if (isKept) fields.add(name, gathered.bytes, isJsonType(contentType))
  })

  const file = Effect.fnUntraced(function* ({ contentType, filename = "", name }: Part) {
    const first = yield* next
    // A page sends an input without a file so.
    if (first._tag === "PartEnd" && filename === "") return
    if (fields.ids + files.count >= attachmentsMax)
      return yield* invalidField("attachments", `at most ${attachmentsMax}`)
    // The file is no longer than all that comes.
    const declaredBytes =
      body.declaredBytes === undefined
        ? undefined
        : Math.min(body.declaredBytes, fileBytesMax, options.maxFileBytes)
    const shown = name.slice(0, nameCharacters).toWellFormed()
    const field = shown === "" ? "file" : shown
    const put = files.put({ contentType, declaredBytes, field, filename }, contentOf(form, first))
    yield* Effect.mapError(put, (fault) => (typeof fault === "string" ? problemOf(fault, maxBytes) : fault))
  })

  for (;;) {
    const event = yield* next
    if (event._tag === "Part") yield* event.part.filename === undefined ? field(event.part) : file(event.part)
    if (event._tag === "End") break
  }
  const ended = yield* Effect.promise(() => form.drain())
  if (ended !== "complete") return yield* Effect.fail(problemOf(ended, maxBytes))
  return fields.read
})

/** Of a part that the client named; no field of ours is longer. */
const nameCharacters = 100

const isJsonType = (contentType: string): boolean => /^application\/json\s*(?:;|$)/i.test(contentType)

/** The bytes of the part that a form is in, of which the first thing is known. */
const contentOf = (form: MultipartBody, first: FormEvent): BlobSource<FormFault> => {
  let known: FormEvent | undefined = first
  return async () => {
    const event = known ?? (await form.next())
    known = undefined
    if (event._tag === "Fault") return Result.fail(event.fault)
    return Result.succeed(event._tag === "Bytes" ? event.bytes : undefined)
  }
}

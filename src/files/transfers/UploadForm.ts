import { isUtf8 } from "node:buffer"
import { Effect, Result } from "effect"
import {
  type BadRequest,
  invalidField,
  PayloadTooLarge,
  type Problem,
  RequestTimeout
} from "#schemas/core/Problem.ts"
import type { Limits } from "#src/Limits.ts"
import type { RawBody } from "#src/front/RawRoute.ts"
import { type FormEvent, type FormFault, MultipartBody, type Part } from "#src/http/MultipartBody.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import type { StagedBlob } from "#src/infra/blobs/BlobUploads.ts"

/** A file of a form, whose bytes are durable. */
export interface FormFile {
  readonly staged: StagedBlob
  readonly filename: string
  readonly contentType: string
}

/** The client has left: there is no one to answer. */
export type Gone = "gone"

/** Fields whose nth value is of the nth file. */
const perFile = ["path", "modifiedAt", "sha256", "ifVersion"] as const
/** Fields of all files of the form. */
const perForm = [
  "dir",
  "directoryId",
  "clientEncrypted",
  "encryptionKeyId",
  "link",
  "target",
  "deviceId"
] as const

type FileField = (typeof perFile)[number]
type FormField = (typeof perForm)[number]

const isOneOf = <const T extends string>(names: ReadonlyArray<T>, name: string): name is T =>
  names.some((known) => known === name)

/** A form that was read to its end. */
export class UploadForm {
  readonly files: Array<FormFile> = []
  readonly #ofFiles = new Map<FileField, Array<string>>()
  readonly #ofForm = new Map<FormField, string>()

  /** The fault of a value that cannot be there, if it is one. */
  add(name: FileField | FormField, value: string): BadRequest | undefined {
    if (isOneOf(perFile, name)) {
      const values = this.#ofFiles.get(name) ?? []
      this.#ofFiles.set(name, values)
      values.push(value)
      return undefined
    }
    if (this.#ofForm.has(name)) return invalidField(name, "given twice")
    this.#ofForm.set(name, value)
    return undefined
  }

  /** undefined where it is absent */
  ofForm(name: FormField): string | undefined {
    return this.#ofForm.get(name)
  }

  /** "" where it is absent */
  textOf(name: string, index: number): string {
    if (isOneOf(perFile, name)) return this.#ofFiles.get(name)?.[index] ?? ""
    return isOneOf(perForm, name) ? (this.#ofForm.get(name) ?? "") : ""
  }

  /** The name of a field in errors, with the number of the file where there are several. */
  fieldOf(name: string, index: number): string {
    return this.files.length > 1 && isOneOf(perFile, name) ? `${name}[${index}]` : name
  }

  /** A field with more values than there are files. */
  get overfull(): string | undefined {
    return perFile.find((name) => (this.#ofFiles.get(name)?.length ?? 0) > this.files.length)
  }
}

type FormLimits = Pick<Limits, "filesPerUpload" | "partsPerUpload" | "uploadFieldBytes" | "uploadFieldsBytes">

const problemOf = (fault: FormFault, { partsPerUpload }: FormLimits): Problem | Gone => {
  switch (fault) {
    case "gone":
      return "gone"
    case "slow":
      return RequestTimeout.of("The request body arrives too slowly")
    case "tooLong":
      return PayloadTooLarge.of("The form is too long")
    case "malformed":
      return invalidField("body", "the form is cut off or malformed")
    case "tooManyParts":
      return invalidField("body", `more than ${partsPerUpload} parts`)
  }
}

/** Takes the bytes of a file that comes. */
type Stage<E> = (source: BlobSource<Problem | Gone>) => Effect.Effect<StagedBlob, E | Problem | Gone>

/** Reads a form whose fields come in any order, and whose files are staged as they come. Others than ours are ignored. */
export const readUploadForm = <E>(body: RawBody, contentType: string, limits: FormLimits, stage: Stage<E>) =>
  new FormReading(body, contentType, limits, stage).read

class FormReading<E> {
  readonly #source: MultipartBody
  readonly #limits: FormLimits
  readonly #stage: Stage<E>
  readonly #form = new UploadForm()
  #fieldBytes = 0

  constructor(body: RawBody, contentType: string, limits: FormLimits, stage: Stage<E>) {
    const bytes = Number.MAX_SAFE_INTEGER
    this.#source = new MultipartBody(body, contentType, { parts: limits.partsPerUpload, bytes })
    this.#limits = limits
    this.#stage = stage
  }

  get read(): Effect.Effect<UploadForm, E | Problem | Gone> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const event = yield* this.#next
        if (event._tag === "End") break
        if (event._tag === "Part") yield* this.#part(event.part)
      }
      const ended = yield* Effect.promise(() => this.#source.drain())
      if (ended !== "complete") return yield* Effect.fail(problemOf(ended, this.#limits))
      return this.#form
    })
  }

  get #next(): Effect.Effect<Exclude<FormEvent, { readonly _tag: "Fault" }>, Problem | Gone> {
    return Effect.flatMap(
      Effect.promise(() => this.#source.next()),
      (event) =>
        event._tag === "Fault" ? Effect.fail(problemOf(event.fault, this.#limits)) : Effect.succeed(event)
    )
  }

  #part(part: Part): Effect.Effect<void, E | Problem | Gone> {
    const { filename, name } = part
    if (name === "files" || name === "file")
      return filename === undefined
        ? Effect.fail(invalidField(name, "expected a file: a part with a filename"))
        : this.#file(part, filename)
    // A file elsewhere would be lost without a word.
    return filename === undefined
      ? this.#field(name)
      : Effect.fail(invalidField(shown(name), "files go into the field files"))
  }

  #file({ contentType }: Part, filename: string): Effect.Effect<void, E | Problem | Gone> {
    return Effect.gen({ self: this }, function* () {
      const first = yield* this.#next
      // A page sends an input without a file so.
      if (first._tag === "PartEnd" && filename === "") return
      const { files } = this.#form
      if (files.length >= this.#limits.filesPerUpload)
        return yield* invalidField("files", `at most ${this.#limits.filesPerUpload} at once`)
      const staged = yield* this.#stage(this.#bytesFrom(first))
      files.push({ staged, filename, contentType })
    })
  }

  /** The bytes of the part that the form is in, of which the first thing is known. */
  #bytesFrom(first: FormEvent): BlobSource<Problem | Gone> {
    let known: FormEvent | undefined = first
    return async () => {
      const event = known ?? (await this.#source.next())
      known = undefined
      if (event._tag === "Fault") return Result.fail(problemOf(event.fault, this.#limits))
      return Result.succeed(event._tag === "Bytes" ? event.bytes : undefined)
    }
  }

  #field(name: string): Effect.Effect<void, Problem | Gone> {
    return Effect.gen({ self: this }, function* () {
      const { uploadFieldBytes, uploadFieldsBytes } = this.#limits
      const pieces: Array<Buffer> = []
      let bytes = 0
      for (;;) {
        const event = yield* this.#next
        if (event._tag !== "Bytes") break
        bytes += event.bytes.length
        this.#fieldBytes += event.bytes.length
        if (bytes > uploadFieldBytes)
          return yield* PayloadTooLarge.of(`${shown(name)}: at most ${uploadFieldBytes} bytes`)
        if (this.#fieldBytes > uploadFieldsBytes)
          return yield* PayloadTooLarge.of(`body: at most ${uploadFieldsBytes} bytes of fields`)
        pieces.push(Buffer.from(event.bytes))
      }
      if (!isOneOf(perFile, name) && !isOneOf(perForm, name)) return
      const text = Buffer.concat(pieces)
      if (!isUtf8(text)) return yield* invalidField(name, "expected UTF-8")
      const fault = this.#form.add(name, text.toString())
      if (fault !== undefined) return yield* fault
    })
  }
}

/** A name that the client gave, in an error; no field of ours is longer, and the head of a part has no control characters. */
const shown = (name: string): string => (name === "" ? "body" : name.slice(0, 100).toWellFormed())

import { MultipartParser } from "effect/http"
import { KeptBuffers } from "#src/infra/shares/KeptBuffers.ts"
import type { BodyEnd, RawBody } from "#src/front/RawRoute.ts"

/** A part of a form; its bytes follow. */
export interface Part {
  readonly name: string
  /** undefined for a field that holds no file */
  readonly filename: string | undefined
  readonly contentType: string
  /** by lower-case name */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
}

/** Why a form cannot be read on: its body ended so, it is no form or is cut off, or it has too many parts. */
export type FormFault = Exclude<BodyEnd, "complete"> | "malformed" | "tooManyParts"

/** The next thing in a form. Bytes are valid until the next one is asked for. */
export type FormEvent =
  | { readonly _tag: "Part"; readonly part: Part }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "PartEnd" }
  | { readonly _tag: "End" }
  | { readonly _tag: "Fault"; readonly fault: FormFault }

export interface FormLimits {
  /** more of them are a fault. The head of a part has at most 16 KiB and 100 lines, by the parser */
  readonly parts: number
  /** a longer body is a fault, what is around the parts included */
  readonly bytes: number
}

/** The head of a part, which the parser holds to 16 KiB, and the boundary before it. */
const mostKeptBytes = 20 * 1024

/** of long pieces: memory that V8 has to collect for each would bring nearer a collection of all memory */
const tails = new KeptBuffers(mostKeptBytes, { most: 64 })

const partEnd: FormEvent = { _tag: "PartEnd" }
const end: FormEvent = { _tag: "End" }

const faultOf = (error: MultipartParser.MultipartError): FormFault =>
  error._tag === "ReachedLimit" ? "tooManyParts" : "malformed"

/** Whether a Content-Type is that of a form with files. */
export const isMultipart = (contentType: string): boolean =>
  /^multipart\/form-data\s*(?:;|$)/i.test(contentType)

/**
 * A `multipart/form-data` body, read as it comes: no more of it is in memory than one pulled piece. Nothing but its parts
 * is looked at; bytes before the first and behind the last are thrown away.
 */
export class MultipartBody {
  private readonly body: RawBody
  private readonly parser: MultipartParser.Parser
  private readonly maxBytes: number
  private pulledBytes = 0
  private events: Array<FormEvent> = []
  private at = 0
  /** the end of the last long piece, which the parser may look at again */
  private tail: Buffer | undefined
  /** the last event, again and again */
  private last: FormEvent | undefined

  constructor(body: RawBody, contentType: string, { bytes, parts }: FormLimits) {
    this.body = body
    this.maxBytes = bytes
    this.parser = MultipartParser.make({
      headers: { "content-type": contentType },
      maxParts: parts,
      // Fields too come as bytes: the caller says how long they may be.
      isFile: () => true,
      onField: () => undefined,
      onFile: (info) => this.begin(info),
      onDone: () => this.close(end),
      onError: (error) => this.close({ _tag: "Fault", fault: faultOf(error) })
    })
  }

  async next(): Promise<FormEvent> {
    for (;;) {
      const event = this.events[this.at]
      if (event !== undefined) {
        this.at++
        return event
      }
      this.events = []
      this.at = 0
      if (this.last !== undefined) return this.last
      const piece = await this.pull()
      if (typeof piece !== "string") this.parse(piece)
      else if (piece === "complete") this.finish()
      else this.close({ _tag: "Fault", fault: piece })
    }
  }

  /** Pulls the rest of the body, behind the end of the form. */
  async drain(): Promise<BodyEnd> {
    for (;;) {
      const piece = await this.pull()
      if (typeof piece === "string") return piece
    }
  }

  private async pull(): Promise<Uint8Array | BodyEnd> {
    const piece = await this.body.pull()
    if (typeof piece === "string") return piece
    this.pulledBytes += piece.length
    return this.pulledBytes > this.maxBytes ? "tooLong" : piece
  }

  /** The parser keeps what could be the beginning of a boundary, and of the head of a part, until it has seen the rest. */
  private parse(piece: Uint8Array): void {
    const split = piece.length - mostKeptBytes
    if (split <= 0) return this.parser.write(Buffer.from(piece))
    const before = this.tail
    this.tail = tails.take()
    this.tail.set(piece.subarray(split))
    this.parser.write(piece.subarray(0, split))
    this.parser.write(this.tail)
    // More has come than the parser keeps, so that it has nothing of what was before.
    if (before !== undefined) tails.giveBack(before)
  }

  private begin(info: MultipartParser.PartInfo): (bytes: Uint8Array | null) => void {
    const { contentDisposition, contentType, filename, headers, name } = info
    // The parser takes any, and a part without one for one without a name (RFC 7578, 4.2).
    if (contentDisposition !== "form-data") this.close({ _tag: "Fault", fault: "malformed" })
    if (this.last === undefined)
      this.events.push({ _tag: "Part", part: { contentType, filename, headers, name } })
    return (bytes) => {
      if (this.last === undefined) this.events.push(bytes === null ? partEnd : { _tag: "Bytes", bytes })
    }
  }

  private finish(): void {
    this.parser.end()
    if (this.last === undefined) this.close({ _tag: "Fault", fault: "malformed" })
  }

  private close(event: FormEvent): void {
    if (this.last !== undefined) return
    this.events.push(event)
    this.last = event
  }
}

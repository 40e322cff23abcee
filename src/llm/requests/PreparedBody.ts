import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody, OutgoingPieces } from "#src/infra/upstream/OutgoingBody.ts"
import type { CallBody, CallBodyOptions } from "./CallBody.ts"
import { describing, limitedTo } from "./UpstreamBody.ts"

type Bytes = Uint8Array<ArrayBuffer>

/** A body as a thread has made it, in canonical JSON: all but the parts that differ from one model to the next. */
export interface PreparedParts {
  /** the members that are passed through, `"a":1,"b":2` */
  readonly rest: Bytes
  /** how many output tokens the caller allows, by the names that were used */
  readonly tokenLimits: JsonRecord
  /** JSON; undefined for a plain call */
  readonly streamOptions: string | undefined
  /** a JSON list */
  readonly messages: Bytes
  /** the same list without its images, before and after the text that stands for them; undefined without images */
  readonly described: readonly [before: Bytes, after: Bytes] | undefined
  /** for counting; undefined if it is too long */
  readonly text: Bytes | undefined
}

const encoder = new TextEncoder()

/**
 * A body that was read in a thread. A call's own fields are put between its pieces, so that it is never made into
 * objects or text here. After the last try has been sent only the text for counting is left of it.
 */
export class PreparedBody implements CallBody {
  #parts: PreparedParts | undefined
  readonly #text: Uint8Array | undefined
  readonly #onLetGo: (bytesLeft: number) => void

  /** `onLetGo` receives the number of bytes still held, once the rest was sent for the last time */
  constructor(parts: PreparedParts, onLetGo: (bytesLeft: number) => void) {
    this.#parts = parts
    this.#text = parts.text
    this.#onLetGo = onLetGo
  }

  forModel({ description, isLast, maxTokens, model }: CallBodyOptions): OutgoingPieces {
    const parts = this.#held()
    const limits = {
      ...parts.tokenLimits,
      ...(maxTokens === undefined ? {} : limitedTo(parts.tokenLimits, maxTokens))
    }
    const fields = [
      `"model":${JSON.stringify(model)}`,
      ...Object.entries(limits).map(([name, tokens]) => `${JSON.stringify(name)}:${JSON.stringify(tokens)}`),
      ...(parts.streamOptions === undefined ? [] : [`"stream_options":${parts.streamOptions}`])
    ]
    const head = `${parts.rest.length === 0 ? "" : ","}${fields.join()},"messages":`
    const { described } = parts
    const messages =
      description === undefined || described === undefined
        ? [parts.messages]
        : [described[0], encoder.encode(JSON.stringify(description)), described[1]]
    if (isLast) this.#parts = undefined
    return {
      pieces: [encoder.encode("{"), parts.rest, encoder.encode(head), ...messages, encoder.encode("}")],
      onSent: isLast ? () => this.#onLetGo(this.#text?.length ?? 0) : undefined
    }
  }

  forVision(model: string, maxTokens: number): OutgoingBody {
    const { messages } = this.#held()
    const fields = `"model":${JSON.stringify(model)},"max_tokens":${maxTokens}`
    return {
      pieces: [
        encoder.encode(`{${fields},"messages":`),
        messages.subarray(0, messages.length - 1),
        encoder.encode(`,${JSON.stringify(describing)}]}`)
      ],
      onSent: undefined
    }
  }

  text(): string | undefined {
    return this.#text === undefined ? undefined : Buffer.from(this.#text).toString("utf8")
  }

  #held(): PreparedParts {
    if (this.#parts === undefined) throw new Error("the body was let go of: its last try has begun")
    return this.#parts
  }
}

import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { promptText } from "./PromptText.ts"
import { type BodyOptions, bodyFor, visionBody, withDescription } from "./UpstreamBody.ts"

/** The request to one model; `description` stands for the images if they were described before. */
export interface CallBodyOptions extends Pick<BodyOptions, "model" | "maxTokens"> {
  readonly description: string | undefined
  /** no other model is asked after this one: once it is sent, the body can be released */
  readonly isLast: boolean
}

/** The body of a completion, for one model after the other. */
export interface CallBody {
  forModel(options: CallBodyOptions): OutgoingBody
  /** the same conversation for a vision model, which describes the images */
  forVision(model: string, maxTokens: number): OutgoingBody
  /** its text as a model reads it, for counting; undefined if that is too long to be counted */
  text(): string | undefined
}

/** A body that was parsed in place. It stays in memory as long as its call. */
export class ParsedBody implements CallBody {
  readonly #body: JsonRecord
  readonly #stream: boolean

  constructor(body: JsonRecord, stream: boolean) {
    this.#body = body
    this.#stream = stream
  }

  forModel({ description, maxTokens, model }: CallBodyOptions): string {
    const request = { body: this.#body, stream: this.#stream }
    const messages = description === undefined ? undefined : withDescription(request, description)
    return bodyFor(request, { model, messages, maxTokens })
  }

  forVision(model: string, maxTokens: number): string {
    return visionBody({ body: this.#body }, model, maxTokens)
  }

  text(): string {
    return promptText(this.#body)
  }
}

import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { readModel } from "./ChatRequest.ts"
import { RequestFault } from "./JsonRequest.ts"

/** A valid request of embeddings. Source: OpenAI, Embeddings; contract/llm#embeddings. */
export interface EmbeddingsRequest {
  /**
   * for the upstream, once: unread members are passed through, except a list of further models, which the key's scope
   * was not checked for
   */
  readonly outgoing: () => OutgoingBody
  readonly model: string
  /** texts, or lists of token ids */
  readonly inputs: number
  /** characters of the texts, or token ids */
  readonly textLength: number
  /** of the same in UTF-8 */
  readonly textBytes: number
  /** for counting tokens if the upstream does not; undefined if it is too long to be counted */
  readonly text: string | undefined
}

/** A request whose body is at hand as JSON. */
interface ParsedEmbeddingsRequest extends EmbeddingsRequest {
  readonly body: JsonRecord
  readonly text: string
}

const inputsMax = 2_048
const expected = `expected a text, between 1 and ${inputsMax} texts, or lists of token ids`

export const readEmbeddingsRequest = (json: unknown): ParsedEmbeddingsRequest | RequestFault => {
  if (!isJsonRecord(json)) return new RequestFault("", "the body has to be a JSON object")
  const model = readModel(json["model"], "model")
  if (model instanceof RequestFault) return model
  const texts = textsOf(json["input"])
  if (texts === undefined) return new RequestFault("input", expected)
  const { dimensions, encoding_format: encoding } = json
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && Number(dimensions) > 0))
    return new RequestFault("dimensions", "expected a whole number above 0")
  if (encoding !== undefined && encoding !== "float" && encoding !== "base64")
    return new RequestFault("encoding_format", "expected float or base64")
  const text = texts.join("\n")
  const { models: _, ...body } = json
  return {
    body,
    outgoing: () => JSON.stringify(body),
    model,
    inputs: texts.length,
    textLength: text.length,
    textBytes: Buffer.byteLength(text),
    text
  }
}

const textsOf = (input: unknown): ReadonlyArray<string> | undefined => {
  const one = textOf(input)
  if (one !== undefined) return one === "" ? undefined : [one]
  if (!Array.isArray(input) || input.length === 0 || input.length > inputsMax) return undefined
  const texts = input.map(textOf)
  return texts.every((text) => text !== undefined && text !== "")
    ? texts.filter((text) => text !== undefined)
    : undefined
}

/** Token ids stand for a text of four characters each. */
const textOf = (part: unknown): string | undefined =>
  typeof part === "string" ? part : isTokens(part) ? "tokn".repeat(part.length) : undefined

const isTokens = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.length > 0 && value.every((one) => Number.isSafeInteger(one) && one >= 0)

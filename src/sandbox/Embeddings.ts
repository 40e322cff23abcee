import { hash } from "node:crypto"
import { type Call, onEnd, refuse, sendJson, type Shared } from "./Call.ts"
import { BadRequest } from "./ChatRequest.ts"
import { tokensOfTexts, usageOf } from "./TokenUsage.ts"

const dimensionsDefault = 256
const dimensionsMax = 4_096

/** A text, texts, a list of token ids, or lists of them. */
const inputsOf = (input: unknown): ReadonlyArray<string> => {
  const inputs: ReadonlyArray<unknown> =
    Array.isArray(input) && typeof input[0] !== "number" ? input : [input]
  if (inputs.length === 0) throw new BadRequest("input must not be empty")
  return inputs.map((item) => {
    if (typeof item === "string") return item
    if (Array.isArray(item)) return item.map((id) => `#${String(id)}`).join(" ")
    throw new BadRequest("input must be a text, texts or token ids")
  })
}

/** A direction on the unit sphere out of the text's hash. */
const vectorOf = (text: string, dimensions: number): Float32Array => {
  const vector = new Float32Array(dimensions)
  let squares = 0
  for (let at = 0, block = Buffer.alloc(0); at < dimensions; at++) {
    if (at % 8 === 0) block = hash("sha256", `${at}:${text}`, "buffer")
    const value = block.readInt32LE((at % 8) * 4) / 2 ** 31
    vector[at] = value
    squares += value * value
  }
  const length = Math.sqrt(squares) || 1
  return vector.map((value) => value / length)
}

const encoded = (vector: Float32Array, encoding: unknown): unknown =>
  encoding === "base64" ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector)

/** `POST /embeddings`. Throws `BadRequest`. */
export const embed = ({ account, models }: Shared, { body, digest, response }: Call): void => {
  const { dimensions = dimensionsDefault, encoding_format: encoding, input, model: id } = body
  const model = typeof id === "string" ? models.get(id) : undefined
  if (model === undefined) throw new BadRequest(`${String(id)} is not a valid model ID`)
  if (typeof dimensions !== "number" || !(dimensions >= 1 && dimensions <= dimensionsMax)) {
    throw new BadRequest(`dimensions must be a number from 1 to ${dimensionsMax}`)
  }
  const inputs = inputsOf(input)
  if (model.behaviour === "fail" || model.behaviour === "limit") {
    account.failed(model.id)
    return refuse(response, {
      status: model.behaviour === "fail" ? 500 : 429,
      message: "Provider returned error"
    })
  }
  const tokens = Math.max(1, tokensOfTexts(inputs))
  const usage = usageOf(model, { promptTokens: tokens, cachedTokens: 0, images: 0 }, 0, 0)
  onEnd(response, (isAborted) => account.served(model.id, usage, isAborted))
  const data = inputs.map((text, index) => ({
    object: "embedding",
    index,
    embedding: encoded(vectorOf(text, Math.floor(dimensions)), encoding)
  }))
  const answer = JSON.stringify({ object: "list", id: `gen-${digest.slice(0, 24)}`, model: model.id, data })
  const said = `"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens},"cost":${usage.cost}}`
  sendJson(response, 200, `${answer.slice(0, -1)},${said}}`)
}

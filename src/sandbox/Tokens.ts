import * as Decimal from "#schemas/llm/Decimal.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import type { SandboxModel } from "./SandboxModel.ts"

/** The tokens of an answer, and their cost. */
export interface Usage {
  readonly promptTokens: number
  /** among the prompt tokens, those read from the cache */
  readonly cachedTokens: number
  readonly completionTokens: number
  /** among the completion tokens */
  readonly reasoningTokens: number
  /** USD as decimal text; exactly the number in the answer */
  readonly cost: string
}

/** Four bytes a token, three tokens a message, 85 an image: crude, and always the same. */
const tokensOfText = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

const messageTokens = 3
const imageTokens = 85

export const tokensOfTexts = (texts: ReadonlyArray<string>): number =>
  texts.reduce((sum, text) => sum + tokensOfText(text), 0)

export interface PromptSize {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly images: number
}

/** Prompts are cached in blocks of so many tokens … */
const cacheBlock = 128
/** … from so many on, as real providers do: everything but the last message counts as seen before. */
const cacheMin = 1_024

export const sizeOf = (request: ChatRequest, model: SandboxModel): PromptSize => {
  let promptTokens = request.tools.length === 0 ? 0 : tokensOfText(JSON.stringify(request.tools))
  let lastTokens = 0
  let images = 0
  for (const message of request.messages) {
    images += message.images.length
    const called = message.calls.flatMap(({ argumentsText, name }) => [name, argumentsText])
    lastTokens =
      messageTokens + tokensOfTexts([message.text, ...called]) + imageTokens * message.images.length
    promptTokens += lastTokens
  }
  const before = promptTokens - lastTokens
  const isCached = model.prices.cacheRead !== undefined && before >= cacheMin
  return { promptTokens, images, cachedTokens: isCached ? before - (before % cacheBlock) : 0 }
}

const times = (price: Decimal.Decimal, count: number): Decimal.Decimal =>
  Decimal.multiply(price, { units: BigInt(count), scale: 0 })

/** As a JSON number can carry it: 17 digits, no more. */
const carried = (exact: Decimal.Decimal): string => {
  const nearest = Decimal.fromNumber(Number(Decimal.format(exact)))
  return Decimal.format(nearest ?? exact)
}

export const usageOf = (
  { prices }: SandboxModel,
  { cachedTokens, images, promptTokens }: PromptSize,
  completionTokens: number,
  reasoningTokens: number
): Usage => {
  const parts = [
    times(prices.prompt, promptTokens - cachedTokens),
    times(prices.cacheRead ?? Decimal.zero, cachedTokens),
    times(prices.completion, completionTokens - reasoningTokens),
    times(prices.reasoning, reasoningTokens),
    times(prices.image, images),
    prices.request
  ]
  const cost = carried(parts.reduce(Decimal.add))
  return { promptTokens, cachedTokens, completionTokens, reasoningTokens, cost }
}

/** The answers of the bench's upstream; the name of a model selects its answer. */

export interface Shape {
  /** pieces of content; a plain answer has them all at once */
  readonly chunks: number
  readonly everyMillis: number
  /** of the text of one piece */
  readonly chunkBytes: number
  /** of a further field of each event, which is no text: it is not charged */
  readonly paddingBytes: number
  /** after the first piece, which says the usage, nothing comes until the client leaves */
  readonly falls?: "silent"
}

const shape = (chunks: number, everyMillis: number, more: Partial<Shape> = {}): Shape => ({
  chunks,
  everyMillis,
  chunkBytes: 24,
  paddingBytes: 0,
  ...more
})

export const shapes = {
  /** asked without `stream`: an answer at once */
  "bench/plain": shape(50, 0),
  /** a short answer, for the first token and the way of each piece */
  "bench/short": shape(50, 20),
  /** a long one, so that pieces count and not requests */
  "bench/long": shape(600, 10),
  "bench/medium": shape(500, 10),
  "bench/long-tiny": shape(40, 10),
  /** for thousands of clients: all of them have begun before the first one's answer ends */
  "bench/crowd": shape(200, 40),
  /** one piece, then silence */
  "bench/idle": shape(1, 0, { falls: "silent" }),
  /** as much as the connection takes */
  "bench/flood": shape(1536, 0, { paddingBytes: 16 * 1024 }),
  "bench/flood-tiny": shape(64, 0, { paddingBytes: 16 * 1024 })
} as const

export type ModelName = keyof typeof shapes

export const isModelName = (name: string): name is ModelName => Object.hasOwn(shapes, name)

/** USD per token, as the upstream lists them; and so in pico-USD. */
export const promptPrice = { usd: "0.000003", pico: 3_000_000n }
export const completionPrice = { usd: "0.000015", pico: 15_000_000n }

/** The prompt tokens that the upstream reports for every prompt of the bench. */
export const promptTokens = 212

/** The upstream's totals: exact integers, as the ledger's. */
export interface Account {
  readonly requests: number
  readonly promptTokens: number
  readonly completionTokens: number
  /** streams whose client left */
  readonly left: number
  /** streams under way */
  readonly open: number
}

const text = [
  "You are a careful assistant. Answer in the language of the question, in plain sentences and without headings.",
  "Below is an excerpt from a signalling handbook. Tell the reader what a driver does when a signal shows two",
  "yellow lights above one another, and why the distance to the next signal matters for it. Keep to the excerpt;",
  "where it is silent, say so. Do not quote more than one sentence of it. A caution aspect announces that the next",
  "signal may be at danger; the driver is to be able to stop there. Where two caution aspects follow one another,",
  "the first is shown as a double yellow so that trains of a higher braking distance have room to slow down."
].join(" ")

/** One request for the model, as a client of chat completions writes it. */
export const requestBody = (model: ModelName, isStream: boolean): string =>
  JSON.stringify({
    model,
    messages: [
      { role: "system", content: text },
      { role: "user", content: "What does the driver do at a double yellow?" }
    ],
    // As many as the pieces come to by a tokenizer, which counts a dozen in each: above it a stream is cut.
    max_tokens: 16_384,
    temperature: 0.2,
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {})
  })

export const completionsPath = "/api/v1/chat/completions"

/** Of a clock that all processes of a machine share. */
export const nowMicros = (): number => {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000_000 + Math.floor(nanos / 1000)
}

/** Marks where the time is written at which a piece of content left the upstream. */
export const stampMark = "@"
export const stampDigits = 15

import { type Context, Effect, Metric } from "effect"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { usdOf } from "#schemas/llm/Money.ts"

const counter = (name: string, description: string) =>
  Metric.counter(`signalbox_model_${name}_total`, { description, incremental: true })

const requests = counter("requests", "Finished calls of models, by source, kind and status")
const failures = counter("failures", "Calls that did not end well, by the code of their error")
const attempts = counter(
  "attempts",
  "Calls of upstream models: more than one for a call that was tried again"
)
const tokens = counter("tokens", "Tokens of calls, by type")
const charged = counter("charged_usd", "USD charged to credits")
const lost = counter("loss_usd", "USD that calls cost beyond what was held for them")

const callSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

const firstToken = Metric.histogram("signalbox_model_first_token_seconds", {
  description: "From the request to the first content of a streamed answer",
  boundaries: callSeconds
})
const duration = Metric.histogram("signalbox_model_request_seconds", {
  description: "From the request to the end of the answer",
  boundaries: callSeconds
})

/** A series that is a number here, and read when metrics are asked for. */
interface Series {
  total: number
}

const nothing = (): void => undefined

/** Shows the number as the counter: each update of the counter itself would look it up by a text. */
const shownAs = (metric: Metric.Counter<number>, context: Context.Context<never>): Series => {
  const series: Series = { total: 0 }
  const get = () => ({ count: series.total, incremental: true })
  Metric.registerUnsafe(metric, context, { get, update: nothing, modify: nothing })
  return series
}

/** Counts a finished call for `/metrics`, at the cost of a map look-up for each series with labels. */
export const countCall = Effect.map(Effect.context<never>(), (context) => {
  const labelled = new Map<string, Series>()
  const labelledBy = (
    key: string,
    metric: Metric.Counter<number>,
    labels: () => Readonly<Record<string, string>>
  ) => {
    const known = labelled.get(key)
    if (known !== undefined) return known
    const made = shownAs(Metric.withAttributes(metric, labels()), context)
    labelled.set(key, made)
    return made
  }
  const ofType = (type: string) => shownAs(Metric.withAttributes(tokens, { type }), context)
  const [prompt, completion, cached] = [ofType("prompt"), ofType("completion"), ofType("cached")]
  const [tried, paid] = [shownAs(attempts, context), shownAs(charged, context)]
  return (record: CallRecord): void => {
    const { errorCode: code, kind, source, status } = record
    labelledBy(`${source} ${kind} ${status}`, requests, () => ({
      source,
      kind,
      status: String(status)
    })).total++
    if (!record.success) labelledBy(code, failures, () => ({ code })).total++
    tried.total += record.attempts
    prompt.total += record.promptTokens
    completion.total += record.completionTokens
    cached.total += record.cachedTokens
    paid.total += usdOf(BigInt(record.settlement.charge))
    if (record.settlement.loss !== "0") lost.updateUnsafe(usdOf(BigInt(record.settlement.loss)), context)
    duration.updateUnsafe((record.endedAt - record.startedAt) / 1000, context)
    if (record.firstTokenMillis !== null) firstToken.updateUnsafe(record.firstTokenMillis / 1000, context)
  }
})

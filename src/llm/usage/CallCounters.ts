import { Effect, Metric } from "effect"
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

/** Counts a finished call for `/metrics`, at the cost of a map look-up for each series. */
export const countCall = Effect.map(Effect.context<never>(), (context) => {
  const labelled = new Map<string, Metric.Counter<number>>()
  const labelledBy = (
    key: string,
    metric: Metric.Counter<number>,
    labels: () => Readonly<Record<string, string>>
  ) => {
    const known = labelled.get(key)
    if (known !== undefined) return known
    const made = Metric.withAttributes(metric, labels())
    labelled.set(key, made)
    return made
  }
  const ofType = (type: string) => Metric.withAttributes(tokens, { type })
  const [prompt, completion, cached] = [ofType("prompt"), ofType("completion"), ofType("cached")]
  return (record: CallRecord): void => {
    const { errorCode: code, kind, source, status } = record
    labelledBy(`${source} ${kind} ${status}`, requests, () => ({
      source,
      kind,
      status: String(status)
    })).updateUnsafe(1, context)
    if (!record.success) labelledBy(code, failures, () => ({ code })).updateUnsafe(1, context)
    attempts.updateUnsafe(record.attempts, context)
    prompt.updateUnsafe(record.promptTokens, context)
    completion.updateUnsafe(record.completionTokens, context)
    cached.updateUnsafe(record.cachedTokens, context)
    charged.updateUnsafe(usdOf(BigInt(record.settlement.charge)), context)
    if (record.settlement.loss !== "0") lost.updateUnsafe(usdOf(BigInt(record.settlement.loss)), context)
    duration.updateUnsafe((record.endedAt - record.startedAt) / 1000, context)
    if (record.firstTokenMillis !== null) firstToken.updateUnsafe(record.firstTokenMillis / 1000, context)
  }
})

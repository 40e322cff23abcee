import { Effect, Metric } from "effect"

const counter = (name: string, description: string) =>
  Metric.counter(`signalbox_notify_${name}_total`, { description, incremental: true })

const ended = counter("deliveries", "Ended deliveries, by the kind of the channel and the outcome")
const attempts = counter("attempts", "Requests to channels, by their kind and the answer's status")

const seconds = Metric.histogram("signalbox_notify_delivery_seconds", {
  description: "From the acceptance of a message to the answer by which a delivery arrived",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 86_400]
})

export type DeliveryEnd = "delivered" | "dead" | "dropped"

export interface DeliveryMetrics {
  readonly ended: (kind: string, outcome: DeliveryEnd) => void
  /** the answer's status, or the fault that there was in its place */
  readonly attempted: (kind: string, status: number | string) => void
  readonly arrived: (afterMillis: number) => void
}

/** Strangers choose statuses: there is a series for those that say something of their own, and for classes of the others. */
const named = new Set([400, 401, 403, 404, 410, 413, 429, 500, 502, 503, 504])
const statusOf = (status: number | string): string =>
  typeof status === "string" ? status : named.has(status) ? String(status) : `${Math.floor(status / 100)}xx`

export const make: Effect.Effect<DeliveryMetrics> = Effect.map(Effect.context<never>(), (context) => {
  const series = new Map<string, Metric.Counter<number>>()
  const count = (
    metric: Metric.Counter<number>,
    kind: string,
    label: "outcome" | "status",
    value: string
  ) => {
    const key = `${label} ${kind} ${value}`
    let known = series.get(key)
    if (known === undefined)
      series.set(key, (known = Metric.withAttributes(metric, { kind, [label]: value })))
    known.updateUnsafe(1, context)
  }
  return {
    ended: (kind, outcome) => count(ended, kind, "outcome", outcome),
    attempted: (kind, status) => count(attempts, kind, "status", statusOf(status)),
    arrived: (afterMillis) => seconds.updateUnsafe(Math.max(0, afterMillis) / 1_000, context)
  }
})

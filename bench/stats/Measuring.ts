import { setTimeout as sleep } from "node:timers/promises"
import { type ClickHouseClient, createClient } from "@clickhouse/client"
import { meteredInParts } from "#bench/harness/Meter.ts"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, latencyOf, type Measurement } from "#bench/harness/Suite.ts"
import { warmUp } from "#bench/harness/WarmUp.ts"
import type { Target, Targets } from "./Targets.ts"

export type StatsContext = CaseContext<Targets>

/** The server's own limit on requests of one key. */
class Limited extends Error {
  readonly waitMillis: number

  constructor(waitMillis: number) {
    super(`The limit of requests is reached for ${waitMillis} ms`)
    this.waitMillis = waitMillis
  }
}

/** Asks again where the limit is reached; answers how long the answer took that came. */
const timed = async <Answer>(
  ask: () => Promise<Answer>
): Promise<{ readonly answer: Answer; readonly millis: number }> => {
  for (;;) {
    const askedAt = performance.now()
    try {
      return { answer: await ask(), millis: performance.now() - askedAt }
    } catch (error) {
      if (!(error instanceof Limited)) throw error
      await sleep(error.waitMillis)
    }
  }
}

/** A window asks at least so often, however long each answer takes. */
const askedLeast = 3

/**
 * Asks one question again and again, one at a time, and times each answer. ClickHouse's cache of results is off (the
 * stage looks at that); its cache of which marks a condition matches is on as in production and is emptied before each
 * question, so that every one reads what it would read for the first time. The page cache of the system is warm.
 */
export const measure = async <Answer>(
  context: StatsContext,
  target: Target,
  ask: () => Promise<Answer>,
  resultOf: (answer: Answer) => string | undefined
): Promise<Measurement> => {
  const clickhouse = clientOf(target)
  const cpu = (): number => cpuMillis(target.pid) + cpuMillis(target.storePid)
  let result: string | undefined
  const window = async (forMillis: number, least: number): Promise<ReadonlyArray<number>> => {
    const millis: Array<number> = []
    const startedAt = performance.now()
    while (millis.length < least || performance.now() - startedAt < forMillis) {
      await clickhouse.command({ query: "SYSTEM DROP QUERY CONDITION CACHE" })
      const asked = await timed(ask)
      result = resultOf(asked.answer)
      millis.push(asked.millis)
      if (context.size === "tiny") break
    }
    return millis
  }
  try {
    const warm = await warmUp({ ...context, windowsMax: 8 }, async (millis) => {
      const before = cpu()
      const { length } = await window(millis / 2, 1)
      return { work: length, cpuMillis: cpu() - before }
    })
    const measured = await meteredInParts(longer(context), target.pid, async (forMillis) => {
      const before = cpuMillis(target.storePid)
      const asked = await window(forMillis, Math.ceil(askedLeast / context.parts))
      return {
        result: asked,
        work: asked.length,
        elapsedMillis: asked.reduce((sum, one) => sum + one, 0),
        otherCpuMillis: cpuMillis(target.storePid) - before
      }
    })
    const { elapsedMillis, parts, results, use, work } = measured
    const millis = Float64Array.from(results.flat())
    const latency = latencyOf(millis)
    return {
      work,
      elapsedMillis,
      cpuMillis: measured.cpuMillis,
      use,
      parts,
      latency,
      figures: {
        "p95 ms": millis[Math.floor(work * 0.95)] ?? Number.NaN,
        "server CPU ms": use.cpuMillis / work,
        "ClickHouse CPU ms": (measured.cpuMillis - use.cpuMillis) / work
      },
      details: { warmUpMillis: warm.millis, steady: warm.isSteady ? 1 : 0 },
      ...(result === undefined ? {} : { result })
    }
  } finally {
    await clickhouse.close()
  }
}

/** A comparison needs as many answers as a longer window has. */
const longer = (context: StatsContext): StatsContext =>
  context.parts > 1 ? { ...context, windowMillis: 2 * context.windowMillis } : context

export const clientOf = ({ clickhouseUrl }: Target): ClickHouseClient =>
  createClient({ url: clickhouseUrl, request_timeout: 120_000, log: { level: 127 } })

/** GET of a site's figures, as the page and API clients ask for them. */
export const figuresOf = async (target: Target, path: string): Promise<unknown> => {
  const answer = await fetch(`${target.url}/api/v1/sites/${target.site}/${path}`, {
    headers: { authorization: `Bearer ${target.key}` }
  })
  const text = await answer.text()
  if (answer.status === 429) throw new Limited(Number(answer.headers.get("retry-after")) * 1000)
  if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

/** The rows of statements that ClickHouse is asked directly, one after the other. */
export const rowsOf = async (
  clickhouse: ClickHouseClient,
  statements: ReadonlyArray<string>
): Promise<ReadonlyArray<ReadonlyArray<Readonly<Record<string, unknown>>>>> => {
  const answers: Array<ReadonlyArray<Readonly<Record<string, unknown>>>> = []
  for (const query of statements) {
    const answer = await clickhouse.query({ query, format: "JSONEachRow" })
    answers.push(await answer.json<Readonly<Record<string, unknown>>>())
  }
  return answers
}

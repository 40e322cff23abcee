import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RawClient } from "#test/front/RawClient.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

/** Prometheus text exposition format 0.0.4. */
const name = String.raw`[a-zA-Z_:][a-zA-Z0-9_:]*`
const label = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"`
const value = String.raw`(?:[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|Inf)|NaN)`
const sampleLine = new RegExp(`^(${name})(?:\\{(${label}(?:,${label})*),?\\})? (${value})(?: \\d+)?$`)
const typeLine = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`)
const helpLine = new RegExp(`^# HELP (${name}) .*$`)

interface Sample {
  readonly name: string
  readonly labels: string
  readonly value: number
}

interface Exposition {
  readonly types: ReadonlyMap<string, string>
  readonly samples: ReadonlyArray<Sample>
}

const numberOf = (text: string): number => (text.endsWith("Inf") ? Infinity : Number(text))

/** Fails at the first line that a Prometheus server would refuse. */
const parse = (text: string): Exposition => {
  assert.isTrue(text.endsWith("\n"))
  const types = new Map<string, string>()
  const samples: Array<Sample> = []
  const helped = new Set<string>()
  for (const line of text.split("\n").filter((_) => _ !== "")) {
    const [, typed, kind] = typeLine.exec(line) ?? []
    const [, explained] = helpLine.exec(line) ?? []
    if (explained !== undefined) {
      assert.isFalse(helped.has(explained), `HELP twice: ${line}`)
      helped.add(explained)
    } else if (typed !== undefined && kind !== undefined) {
      assert.isFalse(types.has(typed), `TYPE twice: ${line}`)
      types.set(typed, kind)
    } else {
      const [, sample, labels = "", number] = sampleLine.exec(line) ?? []
      if (sample === undefined || number === undefined) throw new Error(`no line of the format: ${line}`)
      samples.push({ name: sample, labels, value: numberOf(number) })
    }
  }
  return { types, samples }
}

const metrics = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/metrics", { key: "" }), ({ bytes, headers, status }) => {
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    return Buffer.from(bytes).toString()
  })
)

const requestsOf = ({ samples }: Exposition, labels: RegExp): number =>
  samples
    .filter((sample) => sample.name === "signalbox_http_requests_total" && labels.test(sample.labels))
    .reduce((sum, sample) => sum + sample.value, 0)

layer(TestServer.shared, live)("/metrics", (it) => {
  it.effect("is Prometheus text: every sample typed once, no series twice, histograms cumulative", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      yield* ask("GET", "/api/v1/health")
      const { samples, types } = parse(yield* metrics)
      const series = new Set<string>()
      for (const sample of samples) {
        const family = sample.name.replace(/_(bucket|sum|count)$/, "")
        assert.isTrue(types.has(sample.name) || types.has(family), `${sample.name} has no TYPE`)
        const id = `${sample.name}{${sample.labels}}`
        assert.isFalse(series.has(id), `${id} twice`)
        series.add(id)
      }
      const buckets = samples.filter(({ name }) => name === "signalbox_http_request_seconds_bucket")
      const count = samples.find(({ name }) => name === "signalbox_http_request_seconds_count")?.value
      assert.isAbove(buckets.length, 5)
      assert.strictEqual(buckets.at(-1)?.value, count)
      for (const [index, bucket] of buckets.entries()) {
        assert.isAtLeast(bucket.value, buckets[index - 1]?.value ?? 0)
      }
    })
  )

  it.effect("counts answers by method and status", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const before = parse(yield* metrics)
      yield* ask("GET", "/api/v1/health")
      yield* ask("GET", "/api/v1/health", { key: "" })
      yield* ask("POST", "/api/v1/health")
      const after = parse(yield* metrics)
      for (const labels of [/status="401"/, /method="POST".*status="405"|status="405".*method="POST"/]) {
        assert.strictEqual(requestsOf(after, labels) - requestsOf(before, labels), 1, String(labels))
      }
    })
  )

  it.effect("has no more labels than the server knows, whatever callers make up", () =>
    Effect.gen(function* () {
      const { port } = yield* TestServer
      const before = parse(yield* metrics).samples.length
      for (const method of ["BREW", "PROPFIND", "X-1"]) {
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() =>
          client.send(`${method} /x${method} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
        )
        yield* Effect.promise(() => client.closed())
      }
      const text = yield* metrics
      assert.notMatch(text, /BREW|PROPFIND|X-1/)
      // "other" with 404 or 405 is one series each.
      assert.isAtMost(parse(text).samples.length, before + 2)
    })
  )
})

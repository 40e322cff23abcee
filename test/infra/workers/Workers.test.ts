import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { startRunner } from "#src/infra/workers/Runners.ts"
import { FairQueue, WorkerPool } from "#src/infra/workers/WorkerPool.ts"
import { JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import { eventually } from "#test/harness/Eventually.ts"
import type { TestAsk } from "./TestJobs.ts"

const module = new URL("./TestJobs.ts", import.meta.url)

const kindOf = (isolation: JobKind["isolation"], changes: Partial<JobKind> = {}): JobKind => ({
  module,
  isolation,
  deadlineMillis: 30_000,
  memoryMegabytes: 32,
  ...changes
})

const inThread = kindOf("thread")
const inProcess = kindOf("process")

const ask = (kind: JobKind, value: TestAsk, owner = "one") =>
  Effect.flatMap(Workers, ({ run }) => run({ kind, owner, ask: value }))

const pool = (limits: object = {}) =>
  Effect.provide(
    Workers.layer.pipe(
      Layer.provide(AppConfig.layerOf({ limits: { workerThreads: 1, workerProcesses: 1, ...limits } }))
    )
  )

const failureOf = <A>(exit: Exit.Exit<A, JobNotDone>): string => {
  const failure = Exit.isFailure(exit)
    ? exit.cause.reasons.find((reason) => reason._tag === "Fail")
    : undefined
  if (!(failure?.error instanceof JobNotDone)) return assert.fail(`it was done, or died: ${String(exit)}`)
  return `${failure.error.reason}: ${failure.error.problem}`
}

const json = (length: number): Uint8Array<ArrayBuffer> => {
  const text = new Uint8Array(length * 3 + 4)
  text.set(Buffer.from(`[${"{},".repeat(length)}{}]`))
  return text
}

describe("work beside the event loop", () => {
  for (const kind of [inThread, inProcess]) {
    it.live(`is done in a ${kind.isolation}, whose answer comes back; large bodies are moved`, () =>
      Effect.gen(function* () {
        const value = { a: [1, "ü", new Map([[1n, new Date(5)]]), undefined], bytes: new Uint8Array([1, 2]) }
        assert.deepStrictEqual(yield* ask(kind, { _tag: "Echo", value }), value)
        assert.deepStrictEqual(
          yield* ask(kind, { _tag: "Echo", value: new Uint8Array(0) }),
          new Uint8Array(0)
        )
        const bytes = new Uint8Array(48 * 1024 * 1024).fill(3)
        const { run } = yield* Workers
        const roomy = { ...kind, memoryMegabytes: 128 }
        const job = { kind: roomy, owner: "one", ask: { _tag: "Bytes", bytes }, transfer: [bytes.buffer] }
        const answer = (yield* run(job)) as { readonly length: number; readonly bytes: Uint8Array }
        const { length } = answer.bytes
        assert.deepStrictEqual([answer.length, length], [48 * 1024 * 1024, 48 * 1024 * 1024])
        assert.deepStrictEqual(
          [answer.bytes[4_096], answer.bytes[4_097], answer.bytes[length - 1]],
          [7, 3, 3]
        )
        // A thread took the very bytes away; to a process they were written.
        assert.strictEqual(bytes.length, kind === inThread ? 0 : length)
      }).pipe(pool())
    )

    it.live(`fails alone in a ${kind.isolation}, with its reason, and the next job is done`, () =>
      Effect.gen(function* () {
        const quick = { ...kind, deadlineMillis: 300 }
        const unsendable = { _tag: "Echo", value: () => "no function can be sent" } as const
        const all = yield* Effect.forEach(
          [
            [kind, { _tag: "Throw" }],
            [quick, { _tag: "Spin", millis: 3_600_000 }],
            [kind, { _tag: "Hoard" }],
            [kind, { _tag: "End" }],
            [kind, { _tag: "Function" }],
            [kind, unsendable],
            [{ ...kind, module: new URL("./NoSuchJobs.ts", import.meta.url) }, { _tag: "Throw" }]
          ] as const satisfies ReadonlyArray<readonly [JobKind, TestAsk]>,
          ([one, value]) => Effect.exit(ask(one, value)),
          { concurrency: "unbounded" }
        )
        const done = yield* ask(kind, { _tag: "Echo", value: 1 })
        assert.strictEqual(done, 1)
        const patterns = [
          /^failed: as it was asked$/,
          /^deadline: no answer in 300 ms$/,
          /^memory: it needed more than 32 MB of memory$/,
          /^failed: the job ended its thread$/,
          /^failed: .*could not be cloned/,
          /^failed: .*could not be cloned/,
          /^failed: Cannot find module/
        ]
        for (const [place, pattern] of patterns.entries()) assert.match(failureOf(all[place]!), pattern)
        assert.strictEqual((yield* Workers).stats[kind.isolation]().failed, patterns.length)
      }).pipe(pool())
    )

    it.live(`is ended in a ${kind.isolation} when its caller leaves, and the next job begins`, () =>
      Effect.gen(function* () {
        const endless = yield* Effect.forkChild(ask(kind, { _tag: "Spin", millis: 3_600_000 }))
        const waiting = yield* Effect.forkChild(ask(kind, { _tag: "Spin", millis: 3_600_000 }, "two"))
        const { stats } = yield* Workers
        yield* eventually(
          "one runs",
          Effect.sync(() => stats[kind.isolation]().waiting === 1)
        )
        yield* Fiber.interrupt(waiting)
        yield* Fiber.interrupt(endless)
        assert.strictEqual(yield* ask(kind, { _tag: "Echo", value: 1 }), 1)
      }).pipe(pool())
    )

    it.live(`has none of the server's environment in a ${kind.isolation}`, () =>
      Effect.gen(function* () {
        process.env["TEST_OF_WORKERS"] = "a secret"
        const { pid, variables } = (yield* ask(kind, { _tag: "Where" })) as {
          readonly pid: number
          readonly variables: ReadonlyArray<string>
        }
        delete process.env["TEST_OF_WORKERS"]
        assert.notInclude(variables, "TEST_OF_WORKERS")
        assert.strictEqual(pid === process.pid, kind === inThread)
      }).pipe(pool())
    )
  }

  it.live(
    "in a process costs the process alone: buffers and JSON without end, which would end the server",
    () =>
      Effect.gen(function* () {
        const bystander = yield* Effect.forkChild(ask(inProcess, { _tag: "Spin", millis: 1_000 }, "two"))
        const bytes = yield* Effect.exit(ask(inProcess, { _tag: "HoardBytes" }))
        const parsed = yield* Effect.exit(ask(inProcess, { _tag: "Parse", text: json(4_000_000) }))
        assert.match(failureOf(bytes), /^memory: it needed more than 32 MB of memory$/)
        assert.match(failureOf(parsed), /^memory: /)
        assert.strictEqual(yield* Fiber.join(bystander), "spun")
        const large = { ...inProcess, memoryMegabytes: 256 }
        assert.strictEqual(yield* ask(large, { _tag: "Parse", text: json(500_000) }), 500_001)
      }).pipe(pool({ workerProcesses: 2 }))
  )

  it.live("leaves a worker to other kinds where its own has a limit, whatever waits", () =>
    Effect.gen(function* () {
      const slow = { ...inThread, atOnce: 1 }
      const spin = { _tag: "Spin", millis: 3_600_000 } as const
      yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(ask(slow, spin)))
      yield* Effect.yieldNow
      assert.strictEqual(yield* ask(inThread, { _tag: "Echo", value: 1 }), 1)
      const { workers, waiting } = (yield* Workers).stats.thread()
      assert.deepStrictEqual([workers, waiting], [2, 2])
    }).pipe(pool({ workerThreads: 2 }))
  )

  it.live("replaces an idle worker by one with the memory of its kind", () =>
    Effect.gen(function* () {
      const pidOf = (kind: JobKind) =>
        Effect.map(ask(kind, { _tag: "Where" }), (answer) => (answer as { readonly pid: number }).pid)
      const larger = { ...inProcess, memoryMegabytes: 80 }
      const pids = [
        yield* pidOf(inProcess),
        yield* pidOf(inProcess),
        yield* pidOf(larger),
        yield* pidOf(inProcess)
      ]
      assert.deepStrictEqual([pids[0] === pids[1], new Set(pids).size], [true, 3])
      assert.strictEqual((yield* Workers).stats.process().workers, 1)
    }).pipe(pool())
  )

  it.live("takes turns between owners, and refuses what is too much to wait", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const told = (owner: string) =>
        Effect.tap(ask(inThread, { _tag: "Spin", millis: 5 }, owner), () =>
          Effect.sync(() => order.push(owner))
        )
      const greedy = yield* Effect.forEach([1, 2, 3, 4, 5], () => Effect.forkChild(told("greedy")))
      yield* Effect.yieldNow
      const honest = yield* Effect.forkChild(told("honest"))
      yield* Effect.forEach([...greedy, honest], (fiber) => Fiber.join(fiber))
      assert.isAtMost(order.indexOf("honest"), 2, order.join())
      const many = yield* Effect.all(
        Array.from({ length: 20 }, () => Effect.exit(ask(inThread, { _tag: "Spin", millis: 1 }))),
        { concurrency: "unbounded" }
      )
      const refused = many.filter(Exit.isFailure).map(failureOf)
      assert.deepStrictEqual(new Set(refused), new Set(["busy: 10 jobs wait already"]))
    }).pipe(pool({ workerWaiting: 10 }))
  )

  it("queues owners in turns, and passes over what may not be taken", () => {
    const queue = new FairQueue<string>()
    for (const item of ["a1", "a2", "a3"]) queue.push("a", item)
    queue.push("b", "b1")
    queue.push("a", "a4")
    queue.remove("a", "a2")
    queue.remove("b", "never")
    const all = [
      queue.size,
      queue.shift((item) => item !== "a1"),
      ...Array.from({ length: 4 }, () => queue.shift())
    ]
    assert.deepStrictEqual(all, [4, "a3", "b1", "a1", "a4", undefined])
  })
})

describe("a worker that cannot be started", () => {
  it("costs the job that it was for, and no other", async () => {
    let isFirst = true
    const workers = new WorkerPool({
      start: (kind, listener) => {
        if (!isFirst) return startRunner(kind, listener)
        isFirst = false
        throw new Error("EMFILE")
      },
      workers: 1,
      waitingMax: 10,
      startMillis: 30_000,
      leaveMillis: 1_000,
      idleMillis: 1_000
    })
    const result = (value: number) =>
      new Promise((done) =>
        workers.run({ kind: inThread, owner: "one", ask: { _tag: "Echo", value }, transfer: [], done })
      )
    assert.deepStrictEqual(await Promise.all([result(1), result(2)]), [
      { reason: "failed", problem: "no worker could be started: EMFILE" },
      { _tag: "Done", result: 2 }
    ])
    await workers.stop()
  })
})

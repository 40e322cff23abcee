import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import type { ToolResult } from "#schemas/agents/ClientFrame.ts"
import { lineOf, readJournalText, type JournalEntry } from "#src/clients/agent/journal/JournalEntry.ts"
import { ScriptedServer, type Script, sessionId } from "../ScriptedServer.ts"
import { done, inDirectory, TestClient, type Run } from "../TestClient.ts"

const serving = async (
  script: Script,
  use: (server: ScriptedServer, directory: string) => Promise<void>
): Promise<void> => {
  await inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script)
    try {
      await use(server, directory)
    } finally {
      await server.close()
    }
  })
}

/** A journal as an earlier process may have left it. */
const leaveJournal = (directory: string, entries: ReadonlyArray<JournalEntry>, tail = ""): void => {
  const path = join(directory, hostname().replace(/[^\w.-]/g, "_"), "sessions", sessionId)
  mkdirSync(path, { recursive: true })
  const first: JournalEntry = { kind: "session", url: "http://x", root: "/w" }
  writeFileSync(join(path, "calls.log"), [first, ...entries].map(lineOf).join("") + tail)
}

const askAgain = (method: "proc.exec" | "fs.read", attempt: number) => ({
  type: "tool.request",
  callId: "c1",
  promptId: "p",
  method,
  params: {},
  timeoutMs: 1_000,
  replay: method === "fs.read" ? "safe" : "never",
  attempt
})

/** The answer of a client that resumes with this journal and gets the call again. */
const answerWith = async (
  entries: ReadonlyArray<JournalEntry>,
  ask = askAgain("proc.exec", 2),
  tail = ""
): Promise<{ answer: ToolResult | undefined; runs: number }> => {
  let answered: { answer: ToolResult | undefined; runs: number } = { answer: undefined, runs: 0 }
  await serving(
    () => Promise.resolve(),
    async (server, directory) => {
      leaveJournal(directory, entries, tail)
      const test = new TestClient(server, directory, { resume: sessionId })
      await test.client.start()
      const result = new Promise<ToolResult | undefined>((resolve) => {
        for (const socket of server.connections) {
          socket.on("message", () => resolve(server.session.results.get("c1")?.[0]))
        }
      })
      server.session.say(ask)
      answered = { answer: await result, runs: test.runs.length }
      await test.client.bye()
    }
  )
  return answered
}

const started: JournalEntry = { kind: "started", callId: "c1", promptId: "p" }

describe("a call of an earlier process", () => {
  it("that finished is told again and not made", async () => {
    const outcome = { ok: true, result: { exitCode: 0 }, durationMs: 5 }
    const { answer, runs } = await answerWith([started, { kind: "finished", callId: "c1", outcome }])
    assert.deepStrictEqual([answer?.result, runs], [{ exitCode: 0 }, 0])
  })

  it("that began is answered as interrupted where it may not be repeated", async () => {
    const { answer, runs } = await answerWith([started])
    assert.deepStrictEqual([answer?.ok, answer?.error?.code, runs], [false, "interrupted", 0])
    assert.match(answer?.error?.message ?? "", /outcome is unknown/)
  })

  it("is made where the user had not answered, where it may be repeated, and where nothing is known of it", async () => {
    assert.strictEqual((await answerWith([started, { kind: "asked", callId: "c1" }])).runs, 1)
    assert.strictEqual((await answerWith([], askAgain("fs.read", 2))).runs, 1)
    assert.strictEqual((await answerWith([])).runs, 1)
  })

  it("counts as begun after the user's yes", async () => {
    const { answer, runs } = await answerWith([started, { kind: "asked", callId: "c1" }, started])
    assert.deepStrictEqual([answer?.error?.code, runs], ["interrupted", 0])
  })

  it("is not made where its line was torn while it was written: then it had not begun", async () => {
    const torn = lineOf(started).slice(0, -5)
    assert.strictEqual((await answerWith([], askAgain("proc.exec", 2), torn)).runs, 1)
  })

  it("counts as begun where lines in the middle of the journal are lost", async () => {
    const tail = `garbage\n${lineOf({ kind: "seen", seq: 0 })}`
    const { answer, runs } = await answerWith([], askAgain("proc.exec", 2), tail)
    assert.deepStrictEqual([answer?.error?.code, runs], ["interrupted", 0])
    assert.strictEqual((await answerWith([], askAgain("proc.exec", 1), tail)).runs, 1)
  })

  it("may not be repeated only because a server says so", async () => {
    const { answer, runs } = await answerWith([started], { ...askAgain("proc.exec", 2), replay: "safe" })
    assert.deepStrictEqual([answer?.error?.code, runs], ["interrupted", 0])
    const other = await answerWith([started], { ...askAgain("fs.read", 2), replay: "never" })
    assert.deepStrictEqual([other.answer?.error?.code, other.runs], ["interrupted", 0])
  })
})

const one: Script = async (session) => {
  await session.call("c1", "proc.exec", {})
  session.done()
}

/** A prompt with one call, made like this. */
const oneCall = async (run: Run): Promise<{ result: ToolResult | undefined; server: ScriptedServer }> => {
  let made: ScriptedServer | undefined
  await serving(one, async (server, directory) => {
    const test = new TestClient(server, directory, { run })
    await test.client.start()
    const id = test.client.prompt("go")
    await test.untilDone(id)
    await test.client.bye()
    made = server
  })
  assert.isDefined(made)
  return { result: made.session.results.get("c1")?.[0], server: made }
}

describe("a call", () => {
  it("that is asked for twice is made once, and one that was made in a replayed stretch not at all", () =>
    serving(one, async (server, directory) => {
      let finish: (() => void) | undefined
      const test = new TestClient(server, directory, {
        run: () =>
          new Promise((resolve) => {
            finish = () => resolve({ ok: true, result: {} })
          })
      })
      server.ready = (ready) => ({ ...ready, seq: 2 })
      await test.client.start()
      server.session.say({ ...askAgain("proc.exec", 1), callId: "c0" })
      const id = test.client.prompt("go")
      await test.until(() => finish !== undefined)
      server.session.say(askAgain("proc.exec", 2))
      await test.until(() => test.frames.filter(({ type }) => type === "tool.request").length === 3)
      finish?.()
      await test.untilDone(id)
      assert.deepStrictEqual(test.runs, ["c1"])
      assert.deepStrictEqual(
        server.session.results.get("c1")?.map(({ ok }) => ok),
        [true]
      )
      await test.client.bye()
    }))

  it("that this version does not know is answered, for the server waits", () =>
    serving(
      () => Promise.resolve(),
      async (server, directory) => {
        const test = new TestClient(server, directory)
        await test.client.start()
        const [socket] = server.connections
        const answered = new Promise<ToolResult>((resolve) => {
          socket?.on("message", (data) => resolve(JSON.parse(String(data))))
        })
        socket?.send('{"type":"tool.request","seq":1,"callId":"new","method":"fs.fly"}')
        const { callId, error } = await answered
        assert.deepStrictEqual([callId, error?.code], ["new", "invalid_params"])
        await test.client.bye()
      }
    ))

  it("is stopped by tool.cancel, also while the user is asked", () =>
    serving(one, async (server, directory) => {
      let isAsked = false
      const test = new TestClient(server, directory, {
        approve: () => {
          isAsked = true
          server.session.cancel("c1")
          return new Promise(() => undefined)
        },
        run: async (call, { approve }) => {
          const ask = { callId: call.callId, kinds: [], title: "", detail: "", scope: "" }
          const answer = await approve(ask)
          return { ok: false, error: { code: "cancelled", message: String(answer) }, denied: true }
        }
      })
      await test.client.start()
      const id = test.client.prompt("go")
      await test.untilDone(id)
      assert.isTrue(isAsked)
      assert.strictEqual(server.session.results.get("c1")?.[0]?.error?.message, "no")
      await test.client.bye()
    }))

  it("counts as not begun while the user is asked, and as begun once the answer is yes", () =>
    serving(one, async (server, directory) => {
      const path = join(directory, hostname().replace(/[^\w.-]/g, "_"), "sessions", sessionId, "calls.log")
      const noted = () => readJournalText(readFileSync(path, "utf8")).entries.map(({ kind }) => kind)
      const seen: Array<ReadonlyArray<string>> = []
      const test = new TestClient(server, directory, {
        approve: async () => {
          while (!noted().includes("asked")) await setImmediate()
          seen.push(noted())
          return "once"
        },
        run: async (call, hooks) => {
          await hooks.approve({ callId: call.callId, kinds: [], title: "", detail: "", scope: "" })
          seen.push(noted())
          return done(call, hooks)
        }
      })
      await test.client.start()
      await test.untilDone(test.client.prompt("go"))
      const before = ["session", "seen", "started", "asked"]
      assert.deepStrictEqual(seen, [before, [...before, "started"]])
      await test.client.bye()
    }))

  it("streams its output with numbers, and tells how long it took", async () => {
    const { result, server } = await oneCall((call, hooks) => {
      hooks.onOutput("stdout", "a")
      hooks.onOutput("stderr", "b")
      return done(call, hooks)
    })
    assert.isAtLeast(result?.durationMs ?? -1, 0)
    const pieces = server.received.flatMap((frame) =>
      frame.type === "tool.stream" ? [[frame.index, frame.stream, frame.data]] : []
    )
    assert.deepStrictEqual(pieces, [
      [0, "stdout", "a"],
      [1, "stderr", "b"]
    ])
  })

  it("whose result is larger than a frame is answered with too_large", async () => {
    const { result } = await oneCall(() => Promise.resolve({ ok: true, result: "x".repeat(1_100_000) }))
    assert.deepStrictEqual([result?.ok, result?.error?.code], [false, "too_large"])
  })

  it("of a tool that throws is answered all the same", async () => {
    const { result } = await oneCall(() => Promise.reject(new Error("oh")))
    assert.deepStrictEqual([result?.error?.code, result?.error?.message], ["exec_failed", "Error: oh"])
  })

  it("is not made where the journal cannot be written", () =>
    serving(one, async (server, directory) => {
      const test = new TestClient(server, directory)
      await test.client.start()
      const journal = join(directory, hostname().replace(/[^\w.-]/g, "_"), "sessions", sessionId, "calls.log")
      renameSync(journal, `${journal}.away`)
      mkdirSync(journal)
      const id = test.client.prompt("go")
      await test.untilDone(id)
      assert.deepStrictEqual(test.runs, [])
      assert.match(server.session.results.get("c1")?.[0]?.error?.message ?? "", /journal cannot be written/)
      await test.client.bye()
    }))
})

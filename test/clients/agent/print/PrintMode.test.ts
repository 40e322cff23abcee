import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { promptStatuses, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { codeOfClosed, codeOfDone, exitCodesText } from "#src/clients/agent/ExitCodes.ts"
import { closedReasons } from "#src/clients/agent/connection/ClientEvents.ts"
import { type Home, makeHome, startAgent } from "../AgentProcess.ts"
import { ScriptedServer, type Script, sessionId } from "../ScriptedServer.ts"
import { inDirectory } from "../TestClient.ts"

const serving = (script: Script, use: (server: ScriptedServer, home: Home) => Promise<void>): Promise<void> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script)
    try {
      await use(server, makeHome(directory, server))
    } finally {
      await server.close()
    }
  })

const doneOf = (status: (typeof promptStatuses)[number], toolCallsDenied: number) => ({
  type: "prompt.done" as const,
  seq: 1,
  id: "p",
  status,
  usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  costUsd: 0,
  coveredBySubscription: false,
  turns: 1,
  toolCalls: 1,
  toolCallsDenied
})

describe("signalbox-agent -p", () => {
  it("prints the last answer alone, tells of the rest beside it, and reads what is piped in and what @ names", () =>
    serving(
      async (session) => {
        session.text("m1", "First I look.")
        await session.call("c1", "fs.read", { path: "a.txt" })
        session.text("m2", "It says \u001b[31mhello.")
        session.done()
      },
      async (server, home) => {
        writeFileSync(join(home.workspace, "a.txt"), "hello\n")
        const { code, err, out } = await startAgent(home, ["-p", "explain @a.txt, for a@b.c and @nobody"], {
          input: "piped @a.txt"
        }).ended
        assert.strictEqual(code, 0, err)
        assert.strictEqual(out, "It says \u001b[31mhello.\n")
        assert.match(err, new RegExp(`Session ${sessionId}`))
        assert.match(err, /> fs\.read a\.txt/)
        const [prompt] = server.received.flatMap((frame) => (frame.type === "prompt" ? [frame.text] : []))
        assert.strictEqual(
          prompt,
          'explain @a.txt, for a@b.c and @nobody\n\n<file path="a.txt">\nhello\n\n</file>\n\npiped @a.txt'
        )
        const [result] = server.session.results.get("c1") ?? []
        assert.deepStrictEqual(result?.result, { content: "hello\n", totalLines: 1, truncated: false })
        assert.strictEqual(server.received.at(-1)?.type, "bye")
      }
    ))

  it("refuses what nobody allowed, prints every frame as JSON, and says with its exit code that it refused", () =>
    serving(
      async (session) => {
        const { denied } = await session.call("c1", "proc.exec", { command: "curl http://127.0.0.1:1" })
        session.done("completed", denied === true ? 1 : 0)
      },
      async (server, home) => {
        const { code, err, out } = await startAgent(home, ["-p", "go", "--mode", "json", "--model", "a/b"])
          .ended
        assert.strictEqual(code, 4, err)
        const [session, ...lines] = out
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.deepInclude(session, { type: "session", sessionId, url: server.url, resumed: false })
        assert.strictEqual(session.model.id, "a/b")
        assert.deepStrictEqual(
          lines.filter(({ type }) => type === "link").map(({ state }) => state),
          ["connecting", "connected", "closed"]
        )
        assert.deepStrictEqual(
          lines.filter(({ type }) => type === "tool").map(({ state }) => state),
          ["started", "ended"]
        )
        const frames = lines.filter(({ type }) => type !== "link" && type !== "tool")
        assert.deepStrictEqual(
          frames.map(({ seq }) => seq),
          server.session.sent.map(({ seq }) => seq)
        )
        for (const frame of frames) Schema.decodeUnknownSync(ServerFrame)(frame)
      }
    ))

  it("ends with 7 and the server's words where the key is refused, and with 2 where it was called wrongly", () =>
    serving(
      () => Promise.resolve(),
      async (server, home) => {
        server.refusals = [{ status: 401, body: '{"error":"No such key"}' }]
        const [refused, misused] = await Promise.all([
          startAgent(home, ["-p", "go"]).ended,
          startAgent(home, ["-p", "go", "--allow", "everything"]).ended
        ])
        assert.deepStrictEqual([refused.code, misused.code], [7, 2])
        assert.match(refused.err, /No such key/)
        assert.match(misused.err, /everything is none of .*network, commit/)
      }
    ))

  it("ends the prompt at the first Ctrl-C and then itself, with 130", () =>
    serving(
      async (session) => {
        session.event("text_delta", { messageId: "m", contentIndex: 0, delta: "…" })
        await new Promise(() => undefined)
      },
      async (server, home) => {
        const agent = startAgent(home, ["-p", "go", "--mode", "json"])
        await new Promise<void>((resolve) => {
          agent.child.stdout?.on("data", () => {
            if (agent.out().includes("text_delta")) resolve()
          })
        })
        const take = server.session.take.bind(server.session)
        server.session.take = (frame) => {
          take(frame)
          if (frame.type === "abort") server.session.done("aborted")
        }
        agent.child.kill("SIGINT")
        const { code, out } = await agent.ended
        assert.strictEqual(code, 130)
        assert.match(out, /"status":"aborted"/)
        assert.isTrue(server.received.some((frame) => frame.type === "abort" && frame.clearQueue === true))
      }
    ))
})

describe("the exit codes", () => {
  it("are one for each way in which a prompt or a connection ends, and all of them are explained", () => {
    const codes = [
      ...promptStatuses.map((status) => codeOfDone(doneOf(status, 0))),
      codeOfDone(doneOf("completed", 1)),
      ...closedReasons.map(codeOfClosed)
    ]
    assert.deepStrictEqual(codes.slice(0, 6), [0, 3, 1, 5, 6, 4])
    for (const code of codes) assert.match(exitCodesText, new RegExp(`[ ;]${code} `))
    assert.strictEqual(codeOfClosed("key_refused"), 7)
    assert.strictEqual(codeOfClosed("unreachable"), 7)
  })
})

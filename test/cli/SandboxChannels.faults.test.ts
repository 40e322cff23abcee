import { assert, describe, it } from "@effect/vitest"
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { once } from "node:events"
import { join, normalize } from "node:path"
import type { Readable } from "node:stream"
import { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"
import { Sender } from "#test/notify/sandbox/Sender.ts"
import { signalbox } from "./Signalbox.ts"

const launcher = normalize(join(import.meta.dirname, "../../src/cli/signalbox.mjs"))

/** The origin that a sandbox prints. */
const originOf = async ({ stdout }: ChildProcessByStdio<null, Readable, null>): Promise<string> => {
  let out = ""
  for await (const chunk of stdout) {
    out += String(chunk)
    if (out.endsWith("}\n")) break
  }
  return JSON.parse(out).origin
}

describe("signalbox sandbox-channels", () => {
  it("prints its origin as JSON, serves until it is told to stop, and leaves nothing behind", async () => {
    const child = spawn(process.execPath, [launcher, "sandbox-channels", "--json"], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    const ended = once(child, "close")
    try {
      const origin = await originOf(child)
      const sandbox = new SandboxClient(origin)
      const { status } = await new Sender().push(await sandbox.subscribe())
      assert.strictEqual(status, 201)
      assert.deepInclude(await sandbox.inbox(), { received: 1, accepted: 1 })
      const { code, err } = await signalbox(["sandbox-channels", "--port", new URL(origin).port], {})
      assert.strictEqual(code, 1)
      assert.match(err, /The sandbox of channels cannot listen: .*EADDRINUSE/)
      child.kill("SIGTERM")
      await ended
      const after = await fetch(`${origin}/inbox`).then(
        () => "it answers",
        (error: Error) => String(error.cause)
      )
      assert.include(after, "ECONNREFUSED")
    } finally {
      child.kill("SIGKILL")
    }
  })

  it("says in a sentence why it cannot start", async () => {
    const { code, err } = await signalbox(["sandbox-channels", "--port", "65536"], {})
    assert.deepStrictEqual([code, err.trim()], [1, "signalbox: 65536 is no port"])
  })
})

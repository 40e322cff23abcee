import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join, normalize } from "node:path"
import { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"
import { Sender } from "#test/notify/sandbox/Sender.ts"
import { signalbox } from "./Signalbox.ts"

const launcher = normalize(join(import.meta.dirname, "../../src/cli/signalbox.mjs"))

describe("signalbox sandbox-channels", () => {
  it("prints its origin as JSON, serves until it is told to stop, and leaves nothing behind", async () => {
    const child = spawn(process.execPath, [launcher, "sandbox-channels", "--json"], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    const ended = once(child, "close")
    let out = ""
    for await (const chunk of child.stdout) {
      out += String(chunk)
      if (out.endsWith("}\n")) break
    }
    const { origin } = JSON.parse(out)
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
  })
})

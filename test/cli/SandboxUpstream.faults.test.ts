import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join, normalize } from "node:path"
import { signalbox } from "./Signalbox.ts"

const launcher = normalize(join(import.meta.dirname, "../../src/cli/signalbox.mjs"))

describe("signalbox sandbox-upstream", () => {
  it("prints its URL and models as JSON, serves until it is told to stop, and leaves nothing behind", async () => {
    const child = spawn(process.execPath, [launcher, "sandbox-upstream", "--json"], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    const ended = once(child, "close")
    let out = ""
    for await (const chunk of child.stdout) {
      out += String(chunk)
      if (out.endsWith("}\n")) break
    }
    const { models, url } = JSON.parse(out)
    assert.include(models, "sandbox/echo")
    assert.strictEqual((await fetch(`${url}/account`)).status, 200)
    child.kill("SIGTERM")
    await ended
    const after = await fetch(`${url}/account`).then(
      () => "it answers",
      (error: Error) => String(error.cause)
    )
    assert.include(after, "ECONNREFUSED")
  })

  it("says in a sentence why it cannot start", async () => {
    const { code, err } = await signalbox(["sandbox-upstream", "--models", launcher], {})
    assert.strictEqual(code, 1)
    assert.match(err, /signalbox\.mjs cannot be served: /)
  })
})

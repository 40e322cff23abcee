import { spawnSync } from "node:child_process"
import { normalize, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { protections } from "#src/clients/agent/exec/Protections.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"

const found = await findBubblewrap("/nonexistent")
const main = normalize(join(import.meta.dirname, "../../../../src/clients/agent/main.ts"))

/** A system that lets no program make a user namespace: one within one, in which their number is 0. */
const withoutNamespaces = (
  command: ReadonlyArray<string>
): { readonly out: string; readonly status: number | null } => {
  const limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
  const { status, stdout, stderr } = spawnSync(
    "unshare",
    ["--user", "--map-root-user", "sh", "-c", limit, "sh", ...command],
    { encoding: "utf8", env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" } }
  )
  return { out: stdout + stderr, status }
}
const namespaces = requirement("bubblewrap and a user namespace to limit", () => {
  if ("reason" in found) return found.reason
  const { out, status } = withoutNamespaces(["true"])
  return status === 0 ? undefined : out
})

describe("doctor", () => {
  it("says by what sockets are held, or that they are not", async () => {
    const { protected: lines, notProtected } = await protections()
    const isHeld = !("reason" in found) && found.filter === true
    assert.strictEqual(
      lines.some((line) => /Unix.*seccomp/.test(line)),
      isHeld
    )
    assert.isTrue("reason" in found || isHeld || notProtected.some((line) => line.includes("Unix socket")))
  })
})

describeWith(namespaces, "doctor, where no user namespace can be made", () => {
  it("advises to allow them, not to install the bubblewrap that is installed", () => {
    const { out } = withoutNamespaces([process.execPath, main, "doctor", "--url", "http://127.0.0.1:9"])
    assert.match(out, /sandbox: none/)
    assert.match(out, /advice: bubblewrap is installed.*user namespaces/)
    assert.notMatch(out, /Install bubblewrap/)
  })
})

import { assert, it } from "@effect/vitest"
import { createHash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { beforeAll } from "vitest"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { startCutProxy } from "../../files/uploads/CutProxy.ts"
import { openConsole } from "../ConsolePage.ts"
import { filesOnDisk, type FilesUser, newFilesUser } from "./FilesPage.ts"

/** `UPLOAD_BYTES=1073741824` for a large one by hand, `SIMULATION_SEED` repeats its cuts. */
const bytes = Number(process.env["UPLOAD_BYTES"] ?? 8 * 1024 * 1024)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)

/** of a connection */
const mostBytes = Math.min(bytes / 4, 32 * 1024 * 1024)

describeWith(chromiumPresent, "an upload by Chromium", () => {
  let user: FilesUser

  beforeAll(async () => {
    user = await newFilesUser()
  })

  it("comes through a proxy that cuts every connection, and nothing of it twice", async () => {
    const message = `SIMULATION_SEED=${seed} UPLOAD_BYTES=${bytes}`
    const random = new SeededRandom(seed)
    const content = randomBytes(bytes)
    const { directory, remove } = await filesOnDisk({ "cut.bin": content })
    await user.put("cuts/other.txt", "other")
    // The requests that open the page have room on any of them.
    const proxy = await startCutProxy(user.server.url, () => 100_000 + random.below(mostBytes))
    const { context, enterKey, page } = await openConsole(
      await sharedBrowser(),
      `${proxy.url}/?room=files&path=cuts`,
      [user.key]
    )
    try {
      await enterKey(user.key)
      await page.getByText("other.txt").waitFor()
      await page.locator("input[aria-label='Upload files']").setInputFiles(join(directory, "cut.bin"))
      await page.locator(".uploads").getByText("1 file uploaded").waitFor({ timeout: 600_000 })
      const { files } = await user.read("/api/files?q=cut.bin")
      const [file] = files as ReadonlyArray<{ readonly fileHash: string }>
      assert.strictEqual(file?.fileHash, createHash("sha256").update(content).digest("hex"), message)
      assert.isAbove(proxy.cuts(), 3, message)
      // Connections that opened the page are used, and sent again by Chromium itself: they are few.
      assert.isBelow(proxy.forwarded() - bytes, 2 * mostBytes, message)
    } finally {
      await context.close()
      await proxy.close()
      await remove()
    }
  })
})

import { createReadStream, readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { chromiumPresent, openProfile } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import {
  cappedLink,
  cuts,
  cutting,
  endOf,
  hashOf,
  madeLarge,
  mebibytes,
  ownDirectory,
  served,
  timeout
} from "./CutDownloads.ts"

/** Resumes the download as a person does, wherever Chromium has given up, until its file is there; answers how often. */
const resumed = async (list: Page, directory: string): Promise<number> => {
  await list.goto("chrome://downloads")
  const entry = list.getByText("Resume", { exact: true })
  let [clicks, looks] = [0, 0]
  await until(
    "the file is there",
    async () => {
      const names = readdirSync(directory)
      if (names.length > 0 && names.every((name) => !name.endsWith(".crdownload"))) return undefined
      // For a moment it is resumable also where Chromium goes on by itself, some five times.
      looks = (await entry.count()) === 1 ? looks + 1 : 0
      if (looks > 2) {
        await list.getByRole("button", { name: "More actions" }).click()
        await entry.click()
        clicks++
      }
      return names.join()
    },
    30_000 + 1_000 * mebibytes
  )
  return clicks
}

describeWith(chromiumPresent, "a single-use link in Chromium, cut again and again,", () => {
  layer(served, { excludeTestServices: true })((it) => {
    for (const kind of ["file", "directory"] as const)
      it.effect(
        `to a ${kind} is gone on with by Chromium itself and by its button, byte for byte`,
        () =>
          Effect.gen(function* () {
            const made = yield* madeLarge(kind)
            const token = yield* cappedLink(made.key, made.target, 1)
            const path = `/direct/${token}`
            const proxy = yield* cutting(path, made.key, 2)
            const home = yield* ownDirectory
            const downloads = join(home, "downloads")
            const context = yield* Effect.acquireRelease(
              Effect.promise(() => openProfile(join(home, "profile"), downloads)),
              (opened) => Effect.promise(() => opened.close())
            )
            yield* Effect.promise(async () => {
              const page = await context.newPage()
              await page.goto(`http://127.0.0.1:${proxy.port}${path}`)
              await Promise.all([
                page.waitForEvent("download"),
                page.getByRole("button", { name: "Download" }).click()
              ])
              assert.isAbove(await resumed(await context.newPage(), downloads), 0)
              assert.isAbove(proxy.cuts, cuts / 2)
              const [name = ""] = readdirSync(downloads)
              assert.strictEqual(await hashOf(createReadStream(join(downloads, name))), made.sha256)
            })
            assert.deepStrictEqual(yield* endOf(made.key, token), { uses: 1, downloads: 1, status: 410 })
          }).pipe(Effect.scoped),
        timeout
      )
  })
})

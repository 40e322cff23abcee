import { spawn, spawnSync } from "node:child_process"
import { createReadStream } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import {
  cappedLink,
  cuts,
  cutting,
  endOf,
  hashOf,
  madeLarge,
  ownDirectory,
  served,
  timeout
} from "./CutDownloads.ts"

const programs = requirement("curl and wget", () =>
  ["curl", "wget"].every((name) => spawnSync(name, ["--version"]).status === 0)
    ? undefined
    : "curl or wget is not on the PATH"
)

const run = (command: string, args: ReadonlyArray<string>): Promise<number | null> =>
  new Promise((resolve) => spawn(command, args, { stdio: "ignore" }).on("close", (status) => resolve(status)))

/** Brings a file as often as it takes. */
const byCurl = async (url: string, headers: ReadonlyArray<string>, to: string): Promise<void> => {
  const args = ["-fsS", ...headers.flatMap((header) => ["-H", header]), "-C", "-", "-o", to, url]
  for (let tries = 0; (await run("curl", args)) !== 0; tries++) assert.isBelow(tries, cuts + 5)
}

const byWget = async (url: string, headers: ReadonlyArray<string>, to: string): Promise<void> => {
  const args = ["-q", "-c", "-t", "0", "--waitretry=0", ...headers.map((header) => `--header=${header}`)]
  assert.strictEqual(await run("wget", [...args, "-O", to, url]), 0)
}

describeWith(programs, "a download that is cut", () => {
  layer(served, { excludeTestServices: true })((it) => {
    /** Downloads with both programs through proxies that cut, and compares. */
    const assertGoesOn = Effect.fnUntraced(function* (
      path: string,
      { key, sha256 }: { readonly key: string; readonly sha256: string },
      headers: ReadonlyArray<string>
    ) {
      const directory = yield* ownDirectory
      for (const [seed, program] of [byCurl, byWget].entries()) {
        const proxy = yield* cutting(path, key, seed)
        const to = join(directory, String(seed))
        yield* Effect.promise(() => program(`http://127.0.0.1:${proxy.port}${path}`, headers, to))
        assert.isAbove(proxy.cuts, cuts / 3)
        assert.strictEqual(yield* Effect.promise(() => hashOf(createReadStream(to))), sha256)
      }
    })

    it.effect(
      "of an archive is gone on with by curl -C - and wget -c, byte for byte",
      () =>
        Effect.gen(function* () {
          const made = yield* madeLarge("directory")
          yield* assertGoesOn(made.path, made, [`Authorization: Bearer ${made.key}`])
        }).pipe(Effect.scoped),
      timeout
    )

    for (const kind of ["file", "directory"] as const)
      it.effect(
        `of a capped link to a ${kind} is so, too, and counts once each`,
        () =>
          Effect.gen(function* () {
            const made = yield* madeLarge(kind)
            const token = yield* cappedLink(made.key, made.target, 2)
            yield* assertGoesOn(`/direct/${token}`, made, [])
            assert.deepStrictEqual(yield* endOf(made.key, token), { uses: 2, downloads: 2, status: 410 })
          }).pipe(Effect.scoped),
        timeout
      )
  })
})

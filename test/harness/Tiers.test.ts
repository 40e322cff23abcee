import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { createVitest } from "vitest/node"
import { root } from "./ServerProcess.ts"
import { type Tier, tierOf } from "./Tiers.ts"

const tests = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "test"], {
  cwd: root,
  encoding: "utf8"
})
  .split("\n")
  .filter((file) => /\.test\.\w+$/.test(file) && existsSync(join(root, file)))

/** The projects of vitest.config.ts, by the tier that they are. */
const projects: Readonly<Record<string, Tier>> = {
  quick: "quick",
  "quick-apart": "quick",
  faults: "faults",
  browser: "browser"
}

/** Functions that start processes of the server, of a store or of a browser, or whole suites of the bench. */
const starters = new Map([
  ["test/harness/ServerProcess.ts", /\b(startServer|runServer)\b/],
  ["test/harness/Browser.ts", /\b(sharedBrowser|openUndriven)\b/],
  ["test/harness/RedisServer.ts", /\bstartRedis\b/],
  ["test/harness/StoreHolder.ts", /\bholdStore\b/],
  ["src/infra/postgres/EmbeddedPostgres.ts", /./],
  ["src/infra/clickhouse/EmbeddedClickHouse.ts", /./]
])

interface Import {
  readonly target: string
  readonly names: string
}

/** The imports of a file from this project, but for types. */
const importsOf = (file: string): ReadonlyArray<Import> =>
  Array.from(
    readFileSync(join(root, file), "utf8").matchAll(
      /(?:^|\n)(?:import|export)\s+(?!type\b)([^"'`;]*?)\s*from\s*"((?:#|\.)[^"]+)"/g
    ),
    ([, names = "", specifier = ""]) => ({
      names: names.replace(/\btype \w+/g, ""),
      target: specifier.startsWith("#") ? specifier.slice(1) : normalize(join(dirname(file), specifier))
    })
  )

/** The chain of imports from a file to one that starts a process; undefined where there is none. */
const wayToProcess = (file: string, seen = new Set<string>()): string | undefined => {
  seen.add(file)
  for (const { names, target } of importsOf(file)) {
    if (starters.get(target)?.test(names) === true) return `${file} > ${target}`
    if (!/^(test|bench)\//.test(target) || seen.has(target)) continue
    const way = wayToProcess(target, seen)
    if (way !== undefined) return `${file} > ${way}`
  }
  return undefined
}

describe("the tiers of the tests", () => {
  it("have each file of tests once, in the tier that its name says", async () => {
    const vitest = await createVitest("test", { root, watch: false, config: join(root, "vitest.config.ts") })
    try {
      const found = (await vitest.globTestSpecifications()).map(
        ({ moduleId, project }) => `${projects[project.name]} ${moduleId.slice(root.length + 1)}`
      )
      assert.deepStrictEqual(found.toSorted(), tests.map((file) => `${tierOf(file)} ${file}`).toSorted())
    } finally {
      await vitest.close()
    }
  })

  it("start processes of servers, stores and browsers in the longer ones only", () => {
    assert.include(wayToProcess("test/integration/Crash.faults.test.ts"), "ServerProcess.ts")
    const ways = tests.filter((file) => tierOf(file) === "quick").map((file) => wayToProcess(file))
    assert.deepStrictEqual(
      ways.filter((way) => way !== undefined),
      []
    )
  })
})

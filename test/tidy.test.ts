import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { basename, dirname, extname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { rooms as allRooms } from "#src/Rooms.ts"

/**
 * The habits of ARCHITECTURE.md, held by a test: import direction, rooms, names, sizes, and words that promise
 * work instead of doing it. Sizes of files and functions and circles of imports, those of types included, are oxlint's
 * (`max-lines`, `max-lines-per-function`, `import/no-cycle`).
 */
const root = normalize(join(import.meta.dirname, ".."))

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8"
})
  .split("\n")
  .filter((file) => file !== "" && existsSync(join(root, file)))

const code = files.filter((file) => /\.(ts|tsx|mjs)$/.test(file))
const text = (file: string): string => readFileSync(join(root, file), "utf8")

/** The level of an import: a file may import its own and everything to its left. */
const levels = ["schemas", "streams", "actors", "src"]
const rooms: ReadonlyArray<string> = allRooms.map(({ name }) => name)

const importsOf = (file: string): ReadonlyArray<string> =>
  Array.from(
    text(file).matchAll(/(?:^|\n)\s*(?:import|export)\b[^"'`;]*?from\s*"([^"]+)"|import\("([^"]+)"\)/g),
    (match) => match[1] ?? match[2] ?? ""
  )

/** The path inside the project that an import names, or undefined for a package. */
const targetOf = (file: string, specifier: string): string | undefined =>
  specifier.startsWith("#")
    ? specifier.slice(1)
    : specifier.startsWith(".")
      ? normalize(join(dirname(file), specifier))
      : undefined

/** A file with fewer lines has two readers, tests included. */
const smallLines = 40

/** Small files that may have one reader. */
const alone = [
  // Where a process, a thread, a bundle or a page begins.
  /(^|\/)main\.tsx?$|\/signalbox(-agent)?\.mjs$|(Thread|Worker|SingleFile)\.ts$/,
  // What every room has, however little.
  /^src\/\w+\/(cli\/Commands|Limits|Offers|Room|Server|(\w+\/)?\w+Metrics)\.ts$/,
  // One group of endpoints, its handlers, one command: a file each.
  /(Api|Routes|Command)\.ts$/,
  // One step of a released schema, which never changes.
  /\/migrations\//,
  // A component or a hook of the page.
  /^src\/console\/page\//
]

const edges = code.flatMap((file) =>
  importsOf(file).map((specifier) => ({ file, specifier, target: targetOf(file, specifier) }))
)

const none = (offences: ReadonlyArray<string>): void => assert.deepStrictEqual(offences, [])

describe("the tree", () => {
  it("lets imports point one way only: schemas <- streams <- actors <- src <- test, bench", () => {
    none(
      edges.flatMap(({ file, target }) => {
        const from = levels.indexOf(file.split("/")[0] ?? "")
        const top = target?.split("/")[0] ?? ""
        if (from < 0 || target === undefined) return []
        return levels.indexOf(top) > from || top === "test" || top === "bench"
          ? [`${file} imports ${target}`]
          : []
      })
    )
  })

  it("keeps schemas free of everything but effect", () => {
    none(
      edges.flatMap(({ file, specifier, target }) =>
        file.startsWith("schemas/") && target === undefined && !/^effect(\/|$)/.test(specifier)
          ? [`${file} imports ${specifier}`]
          : []
      )
    )
  })

  it("lets a room see another room's schemas and service, nothing else of it", () => {
    none(
      edges.flatMap(({ file, target }) => {
        const [level, room = ""] = file.split("/")
        const [targetLevel, targetRoom = "", targetFile = ""] = target?.split("/") ?? []
        // Tests of a room use what other rooms' tests have, such as a running server.
        if (!levels.includes(level ?? "")) return []
        if (!rooms.includes(room) || !rooms.includes(targetRoom) || room === targetRoom) return []
        if (targetLevel === "schemas") return []
        const isService = level === "src" && targetLevel === "src" && /^[A-Z]\w+\.ts$/.test(targetFile)
        return isService && !/(Routes|Repository)\.ts$/.test(targetFile) ? [] : [`${file} imports ${target}`]
      })
    )
  })

  it("joins a small file with its only reader, unless it has a reason to be alone", () => {
    const readers = new Map<string, Set<string>>()
    for (const { file, target = "" } of edges)
      readers.set(target, (readers.get(target) ?? new Set()).add(file))
    const product = code.filter((file) => [...levels, "deploy"].includes(file.split("/")[0] ?? ""))
    none(
      product.filter(
        (file) =>
          text(file).split("\n").length <= smallLines &&
          (readers.get(file)?.size ?? 0) < 2 &&
          !alone.some((reason) => reason.test(file))
      )
    )
  })

  it("has every imported file", () => {
    none(
      edges.flatMap(({ file, target }) =>
        target !== undefined && !existsSync(join(root, target)) ? [`${file} imports ${target}`] : []
      )
    )
  })
})

describe("names", () => {
  it("calls a file after what it exports, in PascalCase", () => {
    const free = new Set(["main.ts", "vitest.config.ts", "tidy.test.ts", "globalSetup.ts"])
    none(
      code.filter((file) => {
        const name = basename(file)
        if (!file.endsWith(".ts") || free.has(name)) return false
        return !/^(\d{4}_)?[A-Z][A-Za-z0-9]*((\.(faults|browser))?\.test)?\.ts$/.test(name)
      })
    )
  })

  it("has no utils, helpers, common or barrels", () => {
    none(
      code.filter((file) =>
        /^(utils?|helpers?|common|misc|index)$/i.test(basename(file, extname(file)).replace(/\.test$/, ""))
      )
    )
    none(
      code.filter((file) =>
        dirname(file)
          .split("/")
          .some((part) => /^(utils?|helpers?|common|misc)$/.test(part))
      )
    )
  })
})

describe("text", () => {
  const sources = code.filter((file) => file !== "test/tidy.test.ts")

  const hits = (pattern: RegExp, within: ReadonlyArray<string>): ReadonlyArray<string> =>
    within.flatMap((file) =>
      text(file)
        .split("\n")
        .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []))
    )

  it("promises no work instead of doing it", () => {
    none(hits(/\b(TODO|FIXME|XXX|HACK)\b|not (yet )?implemented|for now\b/, sources))
  })

  it("switches off neither types nor tests", () => {
    none(hits(/@ts-(ignore|nocheck|expect-error)|\bas any\b|: any\b|as unknown as/, sources))
    none(hits(/\b(it|test|describe)(\.\w+)?\.(only|skip|todo)\(/, sources))
  })

  it("begins comments with their subject, not with What, Who or Nobody", () => {
    none(hits(/^\s*(\/\*\*?|\*|\/\/|--) ?(What|Who|Whoever|Whatever|Whose|Nobody)\b/, sources))
    // In the middle of a sentence a line may begin so; a docstring may not.
    none(hits(/\/\*\* ?(what|who|whoever|whatever|whose|nobody)\b/, sources))
  })

  it("swallows no error", () => {
    none(
      hits(
        /catch\s*(\([^)]*\))?\s*\{\s*\}|Effect\.ignore\b|\.catch\(\(\)\s*=>\s*(\{\s*\}|undefined|null)\)/,
        sources
      )
    )
  })

  it("opens every actor with its state, messages, limits, restart policy and what a crash loses", () => {
    const actors = code.filter(
      (file) => /^actors\/(?!kernel\/)/.test(file) && text(file).includes("Supervisor.make(")
    )
    assert.isNotEmpty(actors)
    none(
      actors.filter((file) => {
        const head = text(file).split("\n").slice(0, 12).join("\n").toLowerCase()
        return !["state", "messages", "limits", "restart", "crash"].every((word) => head.includes(word))
      })
    )
  })

  it("keeps large blobs out of the tree", () => {
    const written = new Set(["package-lock.json", "test/contract/openapi.json"])
    none(files.filter((file) => !written.has(file) && text(file).length > 256 * 1024))
  })
})

describe("lint", () => {
  it("finds nothing: sizes of files (450 lines, tests 600) and functions (60), circles of imports and habits", () => {
    const lint = spawnSync(join(root, "node_modules/.bin/oxlint"), ["--format=unix"], {
      cwd: root,
      encoding: "utf8"
    })
    assert.strictEqual(lint.status, 0, lint.stdout + lint.stderr)
  })
})

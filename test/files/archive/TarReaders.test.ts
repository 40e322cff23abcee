import { execFileSync, spawnSync } from "node:child_process"
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { tarHead } from "#streams/files/archive/TarHead.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { bytesOf, type Member, planOf } from "./PlannedArchive.ts"

const program = (name: string) =>
  requirement(name, () =>
    spawnSync(name, ["--version"]).status === 0 ? undefined : `${name} is not on the PATH`
  )

const gnuTar = program("tar")
const bsdTar = program("bsdtar")
const python = program("python3")

/** 63 directories below each other with names of 250 bytes cannot be written to a disk: paths of it end at 4,096. */
const deep = `deep/${Array.from({ length: 14 }, (_, level) => `${level}`.padEnd(200, "d")).join("/")}`

const names = [
  "plain.txt",
  "with space and 'quotes\".txt",
  "-rf",
  "a\\b:c*d?e<f>g|h",
  "con.txt",
  "trailing.",
  "naïve Straße.txt",
  "日本語のファイル名",
  "שלום عالم",
  "x\u0301\u0323 combining",
  "👩‍👩‍👧‍👦.png",
  "x".repeat(100),
  "y".repeat(101),
  "z".repeat(255),
  "é".repeat(127),
  `${"漢".repeat(84)}.gz`
]

const members: ReadonlyArray<Member> = [
  { path: "top/", modifiedSeconds: 1_600_000_000 },
  { path: "top/empty directory/" },
  { path: "top/empty", content: Buffer.alloc(0) },
  { path: "top/before 1970", content: Buffer.from("old"), modifiedSeconds: -1_000_000 },
  { path: "top/in 2300", content: Buffer.from("new"), modifiedSeconds: 10_413_792_000 },
  { path: "top/large", content: Buffer.alloc(300_001, "large") },
  ...deep.split("/").map((_, level, all) => ({ path: `top/${all.slice(0, level + 1).join("/")}/` })),
  { path: `top/${deep}/file`, content: Buffer.from("deep") },
  ...["prefix", "p".repeat(154)].flatMap((directory) => [
    { path: `top/${directory}/` },
    { path: `top/${directory}/${"n".repeat(100)}`, content: Buffer.from("split") }
  ]),
  ...names.map((name) => ({ path: `top/${name}`, content: Buffer.from(`in ${name}`) }))
]

let directory = ""
let archive = ""

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "archive-"))
  archive = join(directory, "a.tgz")
  const planned = planOf(members)
  writeFileSync(archive, bytesOf(planned, 0, planned.plan.sizeBytes))
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Asserts that each entry is where it belongs, with its bytes, mode and time. */
const assertExtracted = (to: string): void => {
  for (const { content, modifiedSeconds = 1_700_000_000, path } of members) {
    const stats = statSync(join(to, path))
    assert.strictEqual(stats.isDirectory(), content === undefined, path)
    assert.strictEqual(stats.mode & 0o777, content === undefined ? 0o755 : 0o644, path)
    if (content === undefined) continue
    assert.strictEqual(Math.round(stats.mtimeMs / 1000), modifiedSeconds, path)
    assert.isTrue(readFileSync(join(to, path)).equals(content), path)
  }
}

const extracted = (name: string, command: string, args: ReadonlyArray<string>, locale: string): void => {
  const to = mkdtempSync(join(directory, `${name}-`))
  const run = spawnSync(command, [...args, archive, "-C", to], {
    env: { ...process.env, LC_ALL: locale, TZ: "UTC" },
    encoding: "utf8"
  })
  assert.strictEqual(run.status, 0, run.stderr)
  assert.strictEqual(run.stderr, "")
  assertExtracted(to)
}

/** A file that says that it has 8 GiB and a bit, and does, of zeros that take no room. */
const sizeBytes = 8 * 1024 ** 3 + 5
const sparse = (): string => {
  const path = join(directory, "large.tar")
  const fd = openSync(path, "w")
  const head = tarHead({ path: "large", sizeBytes, modifiedSeconds: 1 })
  writeSync(fd, head)
  const behind = head.length + Math.ceil(sizeBytes / 512) * 512
  writeSync(fd, tarHead({ path: "behind", sizeBytes: 0, modifiedSeconds: 1 }), 0, 512, behind)
  ftruncateSync(fd, behind + 512 + 1024)
  closeSync(fd)
  return path
}

describeWith(gnuTar, "GNU tar", () => {
  it("reads names of every script, long paths, empty files and directories, and any time", () => {
    extracted("gnu", "tar", ["--warning=no-timestamp", "-xpzf"], "C.UTF-8")
    extracted("gnu-c", "tar", ["--warning=no-timestamp", "-xpzf"], "C")
  })

  it("reads what is behind a file of 8 GiB", () => {
    const text = execFileSync("tar", ["-tvf", sparse()], { encoding: "utf8" })
    assert.match(text, new RegExp(` ${sizeBytes} .* large\\n.* 0 .* behind\\n$`))
  })
})

describeWith(bsdTar, "bsdtar", () => {
  it("reads names of every script, long paths, empty files and directories, and any time", () =>
    extracted("bsd", "bsdtar", ["-xpf"], "C.UTF-8"))

  it("reads what is behind a file of 8 GiB", () => {
    const text = execFileSync("bsdtar", ["-tvf", sparse()], { encoding: "utf8" })
    assert.match(text, new RegExp(` ${sizeBytes} .* large\\n.* 0 .* behind\\n$`))
  })
})

const reading = `
import json, sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    json.dump([[m.name, m.size, m.mtime, m.mode, m.uid, m.gid, m.isdir()] for m in archive], sys.stdout)
`

describeWith(python, "Python's tarfile", () => {
  it("reads every entry, in order, of user 0", () => {
    const json = execFileSync("python3", ["-c", reading, archive], { encoding: "utf8" })
    assert.deepStrictEqual(
      JSON.parse(json),
      members.map(({ content, modifiedSeconds = 1_700_000_000, path }) => [
        path.replace(/\/$/, ""),
        content?.length ?? 0,
        modifiedSeconds,
        content === undefined ? 0o755 : 0o644,
        0,
        0,
        content === undefined
      ])
    )
  })

  it("reads what is behind a file of 8 GiB", () => {
    const json = execFileSync("python3", ["-c", reading, sparse()], { encoding: "utf8" })
    assert.deepStrictEqual(JSON.parse(json), [
      ["large", sizeBytes, 1, 0o644, 0, 0, false],
      ["behind", 0, 1, 0o644, 0, 0, false]
    ])
  })
})

import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { Cause, Effect } from "effect"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AppConfig } from "#src/Config.ts"
import { checkDataDirectory } from "#src/infra/process/StartChecks.ts"
import { wordsOf } from "#src/Start.ts"
import { root, runServer, serverEnvironment } from "#test/harness/ServerProcess.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** One sentence that names the setting and the directory: no trace, no lines of a store. */
const assertTold = ({ code, output }: Ended, dataDir: string, fault: string): void => {
  assert.strictEqual(code, 78, output)
  assert.include(output, `DATA_DIR "${dataDir}" ${fault}`)
  assert.notMatch(output, /^\s+at /m)
  assert.notInclude(output, "initdb")
  assert.isAtMost(output.trimEnd().split("\n").length, 4, output)
}

const inDirectory = async (use: (directory: string) => Promise<void>): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-"))
  try {
    await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The check alone, which is what a start begins with. */
const check = (dataDir: string): Promise<Ended> =>
  Effect.runPromise(
    Effect.flip(checkDataDirectory).pipe(
      Effect.map(({ exitCode, message }) => ({ code: exitCode, output: message })),
      Effect.provide(AppConfig.layerOf({ dataDir }))
    )
  )

/** As an account that is not root, which may write anywhere. */
const startAsNobody = (dataDir: string): Promise<Ended> =>
  new Promise((resolve) => {
    const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    const child = spawn(process.execPath, [join(root, "src/main.ts")], {
      cwd: "/",
      env: serverEnvironment({ DATA_DIR: dataDir, PORT: "0" }),
      stdio: ["ignore", "pipe", "pipe"],
      ...nobody
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    child.once("close", (code) => resolve({ code, output }))
  })

describe("a DATA_DIR in which nothing can be kept is told before the stores start", () => {
  it("where it is a file, or lies under one", () =>
    inDirectory(async (directory) => {
      const file = join(directory, "file")
      writeFileSync(file, "")
      assertTold(await check(file), file, `cannot be used: ${file} is a file`)
      assertTold(await check(join(file, "a/b")), join(file, "a/b"), "cannot be used: ")
    }))

  it("where this account may not write", () =>
    inDirectory(async (directory) => {
      chmodSync(directory, 0o555)
      const below = join(directory, "data")
      assertTold(await startAsNobody(below), below, "cannot be used: this account")
    }))
})

const proc = requirement("/proc", () => (process.platform === "linux" ? undefined : "this is not Linux"))

describeWith(proc, "a DATA_DIR under /proc", () => {
  it("is told, instead of being tried without end", async () => {
    const ended = await runServer({ DATA_DIR: "/proc/signalbox", PORT: "0" })
    assertTold(ended, "/proc/signalbox", "cannot be used: nothing can be kept in /proc")
  })
})

describeWith(smallDisk, "a DATA_DIR on a small disk", () => {
  it("is told with the room that there is and that is needed", () =>
    inDirectory(async (directory) => {
      const disk = new SmallDisk(join(directory, "disk"), 24)
      try {
        const dataDir = join(disk.directory, "data")
        mkdirSync(dataDir)
        assertTold(await check(dataDir), dataDir, "has too little room: 24 MiB are free")
      } finally {
        disk.remove()
      }
    }))
})

describe("a file of DATA_DIR that cannot be used", () => {
  it("is told in the system's words, without a trace", () => {
    const text = "EACCES: permission denied, mkdir '/srv/data/files/new'"
    const defect = Object.assign(new Error(text), { code: "EACCES", syscall: "mkdir" })
    assert.strictEqual(wordsOf(Cause.die(defect)), text)
    assert.include(wordsOf(Cause.die(new Error("a mistake"))), "at ")
  })
})

import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { signalbox } from "#test/cli/Signalbox.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"

/** An embedded PostgreSQL of its own, also where the suite is given a server: an empty variable counts as unset. */
const embedded = { DATABASE_URL: "", ROOMS: "accounts" }

const newKey = async (dataDir: string): Promise<string> => {
  const { code, err, out } = await signalbox(["admin", "key", "--new", "--json"], {
    DATA_DIR: dataDir,
    ...embedded
  })
  assert.strictEqual(code, 0, `${out}${err}`)
  const { adminKey, file } = JSON.parse(out) as { adminKey: string; file: string }
  assert.strictEqual(file, join(dataDir, "admin.json"))
  assert.match(adminKey, /^sk_[0-9A-Za-z]{40}$/)
  assert.strictEqual(JSON.parse(readFileSync(file, "utf8")).adminKey, adminKey)
  return adminKey
}

const statusWith = async (server: ServerProcess, key: string): Promise<number> =>
  (await ask(server, "GET", "/api/v1/admin/users/usr_0000000000000000000000", { key })).status

const isKnown = async (server: ServerProcess, key: string): Promise<boolean> =>
  (await statusWith(server, key)) === 404

describe("an operator who has lost every key", () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServer({ env: embedded })
  })
  afterAll(() => server?.dispose())

  it("is told at the start that there is none, gets one while the server runs, and the command line has it", async () => {
    rmSync(join(server.dataDir, "admin.json"))
    await server.stop()
    const before = server.output().length
    await server.start()
    const message = server.output().slice(before)
    assert.match(message, /"adminKey":"not known here; .*admin key --new/)
    assert.isFalse(existsSync(join(server.dataDir, "admin.json")))

    const without = await signalbox(["keys", "list"], { DATA_DIR: server.dataDir })
    assert.strictEqual(without.code, 78)
    assert.isTrue(await isKnown(server, await newKey(server.dataDir)))
  })

  it("gets one while the server does not run", async () => {
    await server.stop()
    const key = await newKey(server.dataDir)
    assert.isFalse(existsSync(join(server.dataDir, "postgres/postmaster.pid")))
    await server.start()
    assert.isTrue(await isKnown(server, key))
    const listed = await signalbox(["keys", "list", "--json"], { DATA_DIR: server.dataDir })
    assert.strictEqual(listed.code, 0, listed.err)
  })

  it("is told what is missing where no server has been", async () => {
    const env = { DATA_DIR: join(server.dataDir, "nothing"), ...embedded }
    const { code, err, out } = await signalbox(["admin", "key", "--new"], env)
    assert.strictEqual(code, 1)
    assert.include(`${out}${err}`, `No server has kept its data in ${env.DATA_DIR}`)
    assert.isFalse(existsSync(env.DATA_DIR))
    assert.strictEqual((await signalbox(["admin", "key"], env)).code, 2)
  })

  it("may try a copy that was made while the server ran: it is told apart from the original", async () => {
    const copy = `${server.dataDir}-copy`
    // Files that change meanwhile may be missing: as after a loss of power, PostgreSQL has the changes in its log.
    spawnSync("cp", ["-a", server.dataDir, copy])
    assert.isTrue(existsSync(join(copy, "postgres/postmaster.pid")))
    try {
      const key = await newKey(copy)
      assert.isFalse(await isKnown(server, key), "the original has got the key of its copy")
      const restored = await startServer({ env: embedded, dataDir: copy })
      try {
        assert.isTrue(await isKnown(restored, key))
        assert.isTrue(await isKnown(server, server.adminKey()))
        assert.notInclude(server.output(), "PostgreSQL ended")
      } finally {
        await restored.dispose()
      }
      assert.isTrue(await isKnown(server, server.adminKey()))
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  })
})

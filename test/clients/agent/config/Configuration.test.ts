import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { joinResume } from "#src/clients/agent/commands/Flags.ts"
import { configFile, readConfig, writeConfig } from "#src/clients/agent/config/ConfigFile.ts"
import { configDirectory, stateDirectory } from "#src/clients/agent/config/Directories.ts"
import { findServer, isExposed, originOf } from "#src/clients/agent/config/FindServer.ts"
import { makeHome, startAgent } from "../AgentProcess.ts"
import { ScriptedServer } from "../ScriptedServer.ts"
import { inDirectory } from "../TestClient.ts"

const config = { url: "https://one.example", key: "sk-file" }

describe("the configuration", () => {
  it("is written whole and for its user alone, and comes back as it was", () =>
    inDirectory(async (directory) => {
      writeConfig(directory, config)
      writeConfig(directory, { ...config, network: "off" })
      assert.deepStrictEqual(readConfig(directory), { ...config, network: "off" })
      assert.strictEqual(statSync(configFile(directory)).mode & 0o777, 0o600)
      assert.deepStrictEqual(readdirSync(directory), ["config.json"])
      assert.isUndefined(readConfig(join(directory, "nowhere")))
    }))

  it("is refused where others may read it, where it is a link, and where it is not understood", () =>
    inDirectory(async (directory) => {
      writeConfig(directory, config)
      for (const mode of [0o640, 0o604, 0o620]) {
        chmodSync(configFile(directory), mode)
        assert.throws(() => readConfig(directory), /chmod 600/)
      }
      chmodSync(configFile(directory), 0o600)
      writeFileSync(configFile(directory), "{")
      assert.throws(() => readConfig(directory), /signalbox-agent login/)
      const linked = join(directory, "linked")
      mkdirSync(linked)
      symlinkSync(configFile(directory), configFile(linked))
      assert.throws(() => readConfig(linked), /cannot be read/)
    }))

  it("is never in a relative directory, where the agent could write it", () => {
    assert.strictEqual(configDirectory({ XDG_CONFIG_HOME: "/c" }), "/c/signalbox-agent")
    for (const value of [undefined, "", "c", "./c"]) {
      assert.match(configDirectory({ XDG_CONFIG_HOME: value }), /^\/.*\/\.config\/signalbox-agent$/)
      assert.match(stateDirectory({ XDG_STATE_HOME: value }), /^\/.*\/\.local\/state\/signalbox-agent$/)
    }
  })
})

describe("the server", () => {
  it("is the flag's before the environment's before the file's", () => {
    const environment = { SIGNALBOX_URL: "https://two.example/", SIGNALBOX_KEY: "sk-env" }
    assert.deepStrictEqual(findServer({ url: "http://three.example:8/x/" }, environment, config), {
      url: "http://three.example:8/x",
      key: "sk-env"
    })
    assert.deepStrictEqual(findServer({}, environment, config), { url: "https://two.example", key: "sk-env" })
    assert.deepStrictEqual(findServer({}, {}, config), { url: "https://one.example", key: "sk-file" })
  })

  it("never gets a key that is in the file for another one", () => {
    assert.throws(() => findServer({ url: "https://evil.example" }, {}, config), /not sent to https:\/\/evil/)
    assert.throws(() => findServer({}, { SIGNALBOX_URL: "http://one.example" }, config), /not sent to/)
  })

  it("has to be an address of http without a name and a password in it", () => {
    for (const text of ["", "one.example", "ftp://one.example", "https://a:b@one.example", "file:///x"]) {
      assert.isUndefined(originOf(text), text)
      assert.throws(() => findServer({ url: text }, { SIGNALBOX_KEY: "k" }, undefined), /not the address/)
    }
  })

  it("is not encrypted over http, but on this machine", () => {
    assert.isTrue(isExposed("http://one.example") && isExposed("http://127.evil.example"))
    for (const url of ["https://one.example", "http://localhost:3", "http://127.0.0.1", "http://[::1]:3"]) {
      assert.isFalse(isExposed(url), url)
    }
  })
})

describe("--resume", () => {
  it("takes its id with a space too, and nothing else", () => {
    assert.deepStrictEqual(joinResume(["--resume", "ses_1", "-p", "x"]), ["--resume=ses_1", "-p", "x"])
    assert.deepStrictEqual(joinResume(["--resume", "-p", "ses_1"]), ["--resume", "-p", "ses_1"])
  })
})

describe("signalbox-agent login", () => {
  it("writes a key down that the server takes, and no other", () =>
    inDirectory(async (directory) => {
      const server = await ScriptedServer.start()
      const home = makeHome(directory, server)
      const billing = { mode: "free", plan: null, covers_direct_api: false }
      const body = { protocol: 1, default_model: "m", models: [], billing }
      server.answers.set("/api/v1/agent", { status: 401, body: { error: "No such key" } })
      const refused = await startAgent(home, ["login"], { input: `${server.url}\nsk-bad\n` }).ended
      assert.strictEqual(refused.code, 77)
      assert.match(refused.err, /No such key. Nothing was written/)
      assert.isUndefined(readConfig(home.configDir))
      server.answers.set("/api/v1/agent", { status: 200, body })
      const taken = await startAgent(home, ["login"], { input: `${server.url}\nsk-good\n` }).ended
      assert.strictEqual(taken.code, 0, taken.err)
      assert.deepStrictEqual(readConfig(home.configDir), { url: server.url, key: "sk-good" })
      assert.notInclude(taken.out + taken.err, "sk-good")
      assert.deepStrictEqual(server.keys, ["Bearer sk-bad", "Bearer sk-good"])
      await server.close()
    }))
})

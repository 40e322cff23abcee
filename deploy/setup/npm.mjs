import { spawn } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import process from "node:process"
import { bytesMoved, SetupFailed, say, showProgress } from "./progress.mjs"

/** npm's own script, so that it can be run with a Node of our choosing: npm picks packages by the Node it runs on. */
const npmScript = () => {
  const named = process.env.npm_execpath
  if (named !== undefined && /npm-cli\.c?js$/.test(named)) return named
  const beside = [
    join(dirname(process.execPath), "../lib/node_modules/npm/bin/npm-cli.js"),
    ...(process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, "npm"))
  ].find((file) => existsSync(file) && /npm-cli\.c?js$/.test(realpathSync(file)))
  if (beside === undefined) {
    throw new SetupFailed(
      "npm was not found",
      "install Node.js with npm (18 or later) and run the command again"
    )
  }
  return realpathSync(beside)
}

const networkAdvice =
  "check the network, a proxy or `npm config get registry`, then run it again: finished steps are not repeated"

const adviceFor = (output) => {
  if (/ENOSPC/.test(output)) return "the disk is full: free about 2 GB and run the command again"
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET/.test(output)) {
    return `the npm registry was not reached: ${networkAdvice}`
  }
  if (/EACCES|EPERM/.test(output)) return "this user may not write here: own the clone, or clone it elsewhere"
  return "read npm's message above, then run the command again: finished steps are not repeated"
}

/** The host of the packages; an address may hold a password. */
const registryHost = () => {
  const registry = process.env.npm_config_registry ?? ""
  return URL.canParse(registry) ? new URL(registry).host : "registry.npmjs.org"
}

/** Silence of npm until the user reads that it waits, and until it is ended. */
const usualWaits = { toldMillis: 20_000, givenUpMillis: 120_000 }

/** Less than this, read and written, is no sign of work: npm keeps a log of its own, and looks at the clock. */
const workBytes = 64 * 1024

/**
 * Looks whether a process still reads or writes, where the system tells (elsewhere npm's own limits end it); calls back
 * once after `toldMillis` of silence and once after `givenUpMillis`. Returns a function that ends it.
 */
const watchSilence = (pidOf, { givenUpMillis, toldMillis }, { giveUp, tell }) => {
  let bytes = 0
  let since = Date.now()
  let isTold = false
  const timer = setInterval(() => {
    const now = bytesMoved(pidOf())
    if (now === undefined) return
    if (now >= bytes + workBytes) {
      bytes = now
      since = Date.now()
      return
    }
    const silentMillis = Date.now() - since
    if (!isTold && silentMillis >= toldMillis) {
      isTold = true
      tell(silentMillis)
    }
    if (silentMillis < givenUpMillis) return
    clearInterval(timer)
    giveUp(silentMillis)
  }, toldMillis / 10)
  return () => clearInterval(timer)
}

const secondsOf = (millis) => `${Math.round(millis / 1000)} s`

/** npm's own waits are five minutes for an answer, three times over. */
const patience = ["--prefer-offline", "--fetch-timeout=60000", "--fetch-retries=1"]

/** Runs npm with the Node given; shows progress; its output only where it fails. `waits` differ in tests alone. */
export const npm = (node, [command, ...args], { cwd, label, waits = usualWaits }) =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
    const child = spawn(node, [npmScript(), command, ...args, ...patience], {
      cwd,
      env,
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    let given
    const collect = (chunk) => {
      output = (output + chunk).slice(-20_000)
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    const end = showProgress(label, () => child.pid)
    const host = registryHost()
    const stopWatching = watchSilence(() => child.pid, waits, {
      tell: (millis) =>
        say(
          `${label}: nothing came for ${secondsOf(millis)}; npm waits for ${host}. ` +
            `It is ended after ${secondsOf(waits.givenUpMillis)} of silence`
        ),
      giveUp: (millis) => {
        given = new SetupFailed(
          `npm ${command} got nothing from ${host} for ${secondsOf(millis)}`,
          networkAdvice
        )
        child.kill("SIGKILL")
      }
    })
    child.on("error", (error) => {
      end("failed")
      reject(new SetupFailed(`npm could not be started: ${error.message}`, "check the Node.js installation"))
    })
    child.on("close", (code) => {
      stopWatching()
      end(code === 0 ? "done" : "failed")
      if (code === 0) return resolve()
      if (given !== undefined) return reject(given)
      process.stderr.write(output)
      reject(new SetupFailed(`npm ${command} ended with ${code}`, adviceFor(output)))
    })
  })

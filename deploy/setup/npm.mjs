import { spawn } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import process from "node:process"
import { SetupFailed, showProgress } from "./progress.mjs"

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

const adviceFor = (output) => {
  if (/ENOSPC/.test(output)) return "the disk is full: free about 2 GB and run the command again"
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET/.test(output)) {
    return "the npm registry was not reached: check the network, a proxy or `npm config get registry`, then run it again"
  }
  if (/EACCES|EPERM/.test(output)) return "this user may not write here: own the clone, or clone it elsewhere"
  return "read npm's message above, then run the command again: finished steps are not repeated"
}

/** Runs npm with the Node given; shows progress; its output only where it fails. */
export const npm = (node, args, { cwd, label }) =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` }
    const child = spawn(node, [npmScript(), ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    const collect = (chunk) => {
      output = (output + chunk).slice(-20_000)
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    const end = showProgress(label, () => child.pid)
    child.on("error", (error) => {
      end("failed")
      reject(new SetupFailed(`npm could not be started: ${error.message}`, "check the Node.js installation"))
    })
    child.on("close", (code) => {
      end(code === 0 ? "done" : "failed")
      if (code === 0) return resolve()
      process.stderr.write(output)
      reject(new SetupFailed(`npm ${args[0]} ended with ${code}`, adviceFor(output)))
    })
  })

#!/usr/bin/env node
// Starts the command line with a Node that is new enough: this one, or the one that the set-up fetched into .runtime/.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const packaged = join(here, `../../.runtime/node_modules/node-${process.platform}-${process.arch}/bin/node`)
const [major, minor] = process.versions.node.split(".").map(Number)
const isEnough = major > 22 || (major === 22 && minor >= 19)
if (!isEnough && !existsSync(packaged)) {
  console.error(
    `signalbox needs Node 22.19 or later (this is ${process.versions.node}); \`npm start\` fetches one`
  )
  process.exit(69)
}
const node = isEnough ? process.execPath : packaged
const child = spawn(node, [join(here, "main.ts"), ...process.argv.slice(2)], { stdio: "inherit" })
// Signals for this process end the child, and this process with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
child.on("close", (status, signal) => {
  process.exitCode = status ?? (signal === "SIGINT" ? 130 : 1)
})

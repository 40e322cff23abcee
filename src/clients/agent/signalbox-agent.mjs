#!/usr/bin/env node
// Starts the agent client with a Node that can: this one, or the one that the set-up fetched into .runtime/.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { hideEnvironment } from "./hideEnvironment.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const packaged = join(
  here,
  `../../../.runtime/node_modules/node-${process.platform}-${process.arch}/bin/node`
)
const [major, minor] = process.versions.node.split(".").map(Number)
const isEnough = major > 22 || (major === 22 && minor >= 19)
if (isEnough) await import("./main.ts")
else if (existsSync(packaged)) {
  const child = spawn(packaged, [join(here, "main.ts"), ...process.argv.slice(2)], { stdio: "inherit" })
  hideEnvironment()
  // A signal to this process ends the child, and this process with it. A terminal's Ctrl-C reaches both by itself.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on("close", (status, signal) => {
    process.exitCode = status ?? (signal === "SIGINT" ? 130 : 1)
  })
} else {
  process.stderr.write(
    `signalbox-agent needs Node 22.19 or later (this is ${process.versions.node}); \`npm start\` fetches one\n`
  )
  process.exitCode = 69
}

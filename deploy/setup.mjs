#!/usr/bin/env node
// Everything between a fresh clone and a running command, on Node 18 or later with npm: a Node that is new enough, the
// dependencies, the effects of their install scripts, the page at /, and the programs that tests need. Then it runs
// the command.
//
//   node deploy/setup.mjs start [arguments of the server]
//   node deploy/setup.mjs test [arguments of vitest]; test:faults and test:browser are the longer tiers
//   node deploy/setup.mjs bench [suites and options: see bench/harness/Arguments.ts]
//   node deploy/setup.mjs build:agent [platforms, such as linux-x64]
//   node deploy/setup.mjs install
import { spawn } from "node:child_process"
import { cpus } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { ensureOwnBun } from "./agent/bun.mjs"
import { buildConsole, isConsoleBuilt } from "./setup/console.mjs"
import { installDependencies, isInstalled } from "./setup/dependencies.mjs"
import { withLock } from "./setup/lock.mjs"
import { SetupFailed, say } from "./setup/progress.mjs"
import { ensureRuntime, findRuntime } from "./setup/runtime.mjs"
import { ensureTestPrograms } from "./setup/programs.mjs"
import { ensurePythonClients } from "./setup/python.mjs"

const root = dirname(dirname(fileURLToPath(import.meta.url)))

// All are read once, before any JavaScript of the server runs: libuv sizes its pool at the first file operation, and
// uWebSockets.js its header buffer when the addon loads. Stripping types from a thousand modules and compiling them was a
// third of a start: a process that ends in peace keeps what it compiled.
const serverEnvironment = {
  UV_THREADPOOL_SIZE: "16",
  UWS_HTTP_MAX_HEADERS_SIZE: "16384",
  NODE_COMPILE_CACHE: join(root, ".runtime/compiled")
}

// V8's threads mark garbage beside the main one, at its priority: with four of them on two cores the server stood still for
// 100 to 200 ms in each collection.
const helperThreads = Math.max(1, Math.min(4, cpus().length - 1))
const serverFlags = [`--v8-pool-size=${helperThreads}`]

/** Calls back once the parent process has gone; a bench then ends, instead of going on unseen. */
const whenOrphaned = (then) => {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    then()
  }, 500)
  timer.unref()
}

const run = (node, args, endsWithParent = false) =>
  new Promise((resolve) => {
    const env = { ...serverEnvironment, ...process.env, PATH: `${dirname(node)}:${process.env.PATH ?? ""}` }
    const child = spawn(node, args, { cwd: root, stdio: "inherit", env })
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      // A terminal sends SIGINT to the whole group itself; the child must not get it twice.
      process.on(signal, () => {
        if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
      })
    }
    if (endsWithParent) whenOrphaned(() => child.kill("SIGINT"))
    child.on("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)))
  })

/** A warm start takes no lock and writes nothing. */
const setUp = async () => {
  const found = findRuntime(root)
  if (found !== undefined && isInstalled(root, found) && isConsoleBuilt(root)) return found.node
  return withLock(join(root, ".runtime"), async () => {
    const runtime = await ensureRuntime(root)
    await installDependencies(root, runtime)
    await buildConsole(root, runtime)
    return runtime.node
  })
}

/** The projects of vitest.config.ts that a command runs. */
const tiers = { test: ["quick", "quick-apart"], "test:faults": ["faults"], "test:browser": ["browser"] }

const main = async () => {
  const [command = "start", ...args] = process.argv.slice(2)
  const commands = ["start", ...Object.keys(tiers), "bench", "build:agent", "install"]
  if (!commands.includes(command)) {
    throw new SetupFailed(`unknown command "${command}"`, `use one of ${commands.join(", ")}`)
  }
  const node = await setUp()
  if (command === "install") return 0
  if (command === "start") return run(node, [...serverFlags, "src/main.ts", ...args])
  if (command === "bench") return run(node, ["bench/harness/main.ts", ...args], true)
  if (command === "build:agent") return run(node, ["deploy/agent/buildAgent.mjs", ...args])
  await ensureTestPrograms()
  await ensurePythonClients(root)
  await ensureOwnBun(root, node)
  const projects = tiers[command].map((name) => `--project=${name}`)
  return run(node, ["node_modules/vitest/vitest.mjs", "run", ...projects, ...args])
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof SetupFailed)) throw error
  say(`Set-up failed: ${error.message}`)
  say(`What to do: ${error.advice}`)
  process.exitCode = 1
}

import { configDefaults, defineConfig } from "vitest/config"
import { patternsOf } from "./test/harness/Tiers.ts"

const shared = {
  // Of what never ends: a busy machine takes several times as long as an idle one. Tests that repeat something take longer.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // Of one file, where it says that its tests may run side by side: they do so to wait.
  maxConcurrency: 20,
  pool: "forks",
  // One more than the two cores of a small machine: tests that wait leave theirs to others.
  maxWorkers: 3
} as const

const longer = [...configDefaults.exclude, patternsOf.faults, patternsOf.browser]

/** Quick files that need a process of their own. */
const apart = [
  // These look at, or change, the open files, memory and environment of the process.
  "test/clients/agent/boundary/**/*.test.ts",
  "test/infra/process/**/*.test.ts",
  // uWebSockets.js keeps something of sockets for the whole thread (FrontPatience.faults.test.ts).
  "test/front/**/*.test.ts"
]

export default defineConfig({
  test: {
    // Of the run, not of a project: the stores are started once.
    globalSetup: ["test/harness/globalSetup.ts"],
    reporters: ["default", "./test/harness/SlowestFiles.ts"],
    projects: [
      { test: { ...shared, name: "quick-apart", include: apart, exclude: longer } },
      {
        test: {
          ...shared,
          name: "quick",
          include: ["test/**/*.test.ts"],
          exclude: [...longer, ...apart],
          // One file after the other in a few processes: what they import is loaded once for each process, and one
          // server is started there for all files that share it (test/harness/TestServer.ts).
          isolate: false
        }
      },
      { test: { ...shared, name: "faults", include: [patternsOf.faults] } },
      {
        test: {
          ...shared,
          name: "browser",
          include: [patternsOf.browser],
          // A Chromium and a server for each of two processes, when the others are done (where all tiers are run at once).
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})

import { configDefaults, defineConfig } from "vitest/config"

const shared = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: "forks",
  // One more than the two cores of a small machine: tests that wait leave theirs to others.
  maxWorkers: 3
} as const

/** Every file in a process of its own; these run first. */
const apart = [
  // Whole servers for a minute: begun last, they would be waited for alone.
  "test/bench/**/*.test.ts",
  "test/contract/**/*.test.ts",
  "test/integration/**/*.test.ts",
  // What a process has open, takes or is told in its environment is looked at, or changed.
  "test/clients/agent/boundary/**/*.test.ts",
  "test/infra/process/**/*.test.ts",
  "test/llm/faults/Soak.test.ts",
  // uWebSockets.js keeps something of sockets for the whole thread (FrontPatience.test.ts).
  "test/infra/uws/**/*.test.ts"
]

export default defineConfig({
  test: {
    // Of the run, not of a project: the stores are started once.
    globalSetup: ["test/stores/globalSetup.ts"],
    projects: [
      { test: { ...shared, name: "apart", include: apart } },
      {
        test: {
          ...shared,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...apart],
          // One file after the other in a few processes: what they import is loaded once for each process and not for
          // each file, which was a second of CPU for most of them.
          isolate: false
        }
      }
    ]
  }
})

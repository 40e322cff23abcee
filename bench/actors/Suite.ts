import type { BenchSuite } from "#bench/harness/Suite.ts"
import { askCases } from "./Asks.ts"
import { idleBare, idleSupervised } from "./IdleActors.ts"
import { clockRead, eventLimiter, rateBucket } from "./Limiters.ts"

export const suite: BenchSuite = {
  name: "actors",
  about:
    "supervised actors against bare fibers with queues, and the limiters of the hot path against reading the time",
  unit: "calls",
  cases: [
    ...askCases({ callers: 1, actors: 1 }),
    ...askCases({ callers: 64, actors: 1 }),
    ...askCases({ callers: 64, actors: 1_000 }),
    { name: "idle fiber + queue", group: "memory", baseline: true, run: idleBare },
    { name: "idle supervised actor", group: "memory", compared: "full", run: idleSupervised },
    { name: "performance.now()", group: "limiters", baseline: true, run: clockRead },
    { name: "rate bucket, 100 keys", group: "limiters", compared: "always", run: rateBucket(100) },
    { name: "rate bucket, 50,000 keys", group: "limiters", compared: "always", run: rateBucket(50_000) },
    {
      name: "event limiter, 1,000 visitors",
      group: "limiters",
      compared: "always",
      run: eventLimiter(1_000)
    },
    {
      name: "event limiter, 500,000 visitors",
      group: "limiters",
      compared: "always",
      run: eventLimiter(500_000)
    }
  ]
}

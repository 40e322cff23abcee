import type { BenchSuite } from "#bench/harness/Suite.ts"
import { begun, inserts, offers, oneStep } from "./Single.ts"
import { type Given, stage } from "./Stage.ts"
import { bySkipLocked, byStatements, byWorker } from "./Throughput.ts"

const most = "claim and settle, the most"
const one = "one job at a time"
const many = "offers of 10,000"

export const suite: BenchSuite<Given> = {
  name: "jobs",
  about:
    "jobs in lanes (1,000 lanes, 64 jobs at once): the worker against its own statements in a bare loop, and against a " +
    "queue of one table without lanes, order or record (SELECT … FOR UPDATE SKIP LOCKED, DELETE), the limit",
  unit: "jobs",
  stage,
  cases: [
    { name: "skip locked and delete", group: most, baseline: true, run: bySkipLocked },
    { name: "statements", group: most, compared: "full", run: byStatements({}) },
    { name: "worker", group: most, compared: "always", run: byWorker({}) },
    { name: "worker, 200,000 ended", group: most, compared: "full", run: byWorker({ ended: 200_000 }) },
    {
      name: "worker, 1,000,000 wait in 100,000 lanes",
      group: most,
      compared: "full",
      run: byWorker({ waiting: 1_000_000 })
    },
    { name: "offer", group: one, compared: "always", run: oneStep("offer") },
    { name: "claim", group: one, compared: "full", run: oneStep("claim") },
    { name: "settle", group: one, compared: "full", run: oneStep("settle") },
    { name: "offered to begun", group: one, compared: "always", run: begun },
    { name: "insert", group: many, baseline: true, run: inserts },
    { name: "offer of 10,000", group: many, compared: "always", run: offers }
  ]
}

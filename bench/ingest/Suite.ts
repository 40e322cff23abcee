import { unavailableUws } from "#bench/harness/ForkedServer.ts"
import { type BenchSuite, fullOnly } from "#bench/harness/Suite.ts"
import { acceptsBeside, durableAccepts, rawAccepts } from "./AcceptRate.ts"
import { acceptAndDrain } from "./Drain.ts"
import { freshness } from "./Freshness.ts"
import { type Given, stage } from "./IngestServer.ts"

export const suite: BenchSuite<Given> = {
  name: "ingest",
  about:
    "beacons of 100,000 visitors: uWebSockets.js alone against the server that has them on disk before its 202 " +
    "(latency at 80 % of each one's rate); the same with few and many people present; a million of them until ClickHouse has them; how soon it shows them " +
    "(latency from 202 to visible)",
  unit: "events",
  rounds: 3,
  stage,
  cases: [
    { name: "raw uWS, 202", group: "accept", baseline: true, unavailable: unavailableUws, run: rawAccepts },
    {
      name: "durable",
      group: "accept",
      compared: "always",
      sideBySide: true,
      run: durableAccepts({ drains: false })
    },
    {
      name: "durable, ClickHouse draining",
      group: "accept",
      compared: "full",
      run: durableAccepts({ drains: true })
    },
    fullOnly({
      name: "6,000 people present",
      group: "present",
      baseline: true,
      compared: "full",
      sideBySide: true,
      run: acceptsBeside(6_000)
    }),
    fullOnly({
      name: "600,000 people present",
      group: "present",
      compared: "full",
      sideBySide: true,
      run: acceptsBeside(600_000)
    }),
    { name: "to ClickHouse", group: "drain", compared: "full", run: acceptAndDrain },
    { name: "at 5,000 events/s", group: "freshness", compared: "full", run: freshness(5_000) }
  ]
}

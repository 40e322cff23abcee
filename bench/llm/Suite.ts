import { type BenchCase, type BenchSuite, fullOnly } from "#bench/harness/Suite.ts"
import { crowded, flowing, mostCalls, plainCallsAt, runningStreams, streamedCalls } from "./Calls.ts"
import { idleStreams, slowReaders } from "./Crowds.ts"
import { unavailableUws } from "#bench/harness/ForkedServer.ts"
import { unavailablePortkey } from "./Portkey.ts"
import { type Given, selfWarming, stage } from "./Stage.ts"
import type { TargetName } from "./Targets.ts"

type Run = (name: TargetName) => BenchCase<Given>["run"]

const all: ReadonlyArray<TargetName> = ["direct", "raw pipe", "ours", "Portkey"]
const through: ReadonlyArray<TargetName> = ["raw pipe", "ours", "Portkey"]

/** Cases of one group. */
const group = (
  title: string,
  short: string,
  run: Run,
  targets: ReadonlyArray<TargetName>,
  quick: "compared side by side" | undefined = undefined
): ReadonlyArray<BenchCase<Given>> =>
  targets.map((target) => ({
    name: `${target} (${short})`,
    group: title,
    baseline: target === "raw pipe",
    unavailable: target === "Portkey" ? unavailablePortkey : unavailableUws,
    ...(target === "ours"
      ? { compared: quick === undefined ? "full" : "always", sideBySide: quick !== undefined }
      : {}),
    run: run(target)
  }))

export const suite: BenchSuite<Given> = {
  name: "llm",
  about:
    "model calls to a fast upstream: asked directly, through uWebSockets.js and undici alone (the limit), through ours " +
    "with billing and logging on, and through Portkey; ours must have booked what the upstream served, to the last " +
    "pico-dollar",
  unit: "calls or pieces",
  rounds: 5,
  stage,
  cases: [
    ...group("plain calls, 50/s", "plain", plainCallsAt(50), all).map(fullOnly),
    ...group("plain calls, 1,000/s", "busy", plainCallsAt(1_000), all).map(fullOnly),
    ...group("streams, 50/s, to the first piece", "first", streamedCalls, all),
    ...group("plain calls, the most", selfWarming, mostCalls, all, "compared side by side"),
    ...group("pieces of 50 running streams", "pieces", runningStreams(flowing), all),
    ...group("pieces of 2,000 streams, 50,000/s", "crowd", runningStreams(crowded), through).map(fullOnly),
    ...group("the second 1,000 idle streams, then all left at once", "idle", idleStreams, through).map(
      fullOnly
    ),
    ...group("20 slow readers", "slow", slowReaders, through).map(fullOnly)
  ]
}

import type { BenchSuite } from "#bench/harness/Suite.ts"
import { unavailableUws } from "#bench/llm/ForkedServer.ts"
import { idleSockets } from "./IdleSockets.ts"
import { resumeStorm } from "./ResumeStorm.ts"
import { slowReaders } from "./SlowReaders.ts"
import { type ServerName, stage } from "./Stages.ts"
import { tokenLatency } from "./TokenLatency.ts"

const servers: ReadonlyArray<ServerName> = ["raw uWebSockets.js", "ours"]
const isBaseline = (name: ServerName): boolean => name !== "ours"

export const suite: BenchSuite<undefined> = {
  name: "sockets",
  about:
    "agent sessions over WebSockets, against uWebSockets.js alone answering the same frames: attaching, being idle, " +
    "resuming after kill -9, streaming, and a crowd that reads nothing",
  unit: "sessions or pieces",
  rounds: 3,
  stage,
  cases: [
    ...servers.map((name) => ({
      name: `${name} (idle)`,
      group: "19,000 sessions attach and are idle",
      baseline: isBaseline(name),
      unavailable: unavailableUws,
      run: idleSockets(name)
    })),
    {
      name: "ours (storm)",
      group: "19,000 sessions resume after kill -9, 500 mid-stream, 500 mid-tool",
      unavailable: unavailableUws,
      run: resumeStorm
    },
    ...servers.map((name) => ({
      name: `${name} (tokens)`,
      group: "1,000 sessions stream 10 pieces a second each",
      baseline: isBaseline(name),
      unavailable: unavailableUws,
      run: tokenLatency(name)
    })),
    ...[true, false].map((reads) => ({
      name: reads ? "all read (slow)" : "20 read nothing (slow)",
      group: "200 sessions stream while 20 others are printed 8 MiB each",
      baseline: reads,
      unavailable: unavailableUws,
      run: slowReaders(reads)
    }))
  ]
}

import { type BenchCase, type BenchSuite, fullOnly } from "#bench/harness/Suite.ts"
import { unavailableUws } from "#bench/harness/ForkedServer.ts"
import { idleSockets } from "./IdleSockets.ts"
import { resumeStorm } from "./ResumeStorm.ts"
import { slowReaders } from "./SlowReaders.ts"
import { type ServerName, stage } from "./Stages.ts"
import { tokenLatency } from "./TokenLatency.ts"

const servers: ReadonlyArray<ServerName> = ["raw uWebSockets.js", "ours"]
const role = (name: ServerName, compared: "always" | "full"): Partial<BenchCase<undefined>> =>
  name === "ours" ? { compared, sideBySide: compared === "always" } : { baseline: true }

export const suite: BenchSuite<undefined> = {
  name: "sockets",
  about:
    "agent sessions over WebSockets, against uWebSockets.js alone answering the same frames: attaching, being idle, " +
    "resuming after kill -9, streaming, and a crowd that reads nothing; 19,000 sessions in a full run, of which 500 " +
    "resume mid-stream and 500 mid-tool, 3,000 in a quick one",
  unit: "sessions or pieces",
  rounds: 3,
  stage,
  cases: [
    ...servers.map((name) => ({
      name: `${name} (idle)`,
      group: "sessions attach and are idle",
      ...role(name, "full"),
      unavailable: unavailableUws,
      run: idleSockets(name)
    })),
    fullOnly({
      name: "ours (storm)",
      group: "sessions resume after kill -9, some mid-stream, some mid-tool",
      compared: "full",
      unavailable: unavailableUws,
      run: resumeStorm
    }),
    ...servers.map((name) => ({
      name: `${name} (tokens)`,
      group: "sessions stream 10 pieces a second each",
      ...role(name, "always"),
      unavailable: unavailableUws,
      run: tokenLatency(name)
    })),
    ...[true, false].map((reads) =>
      fullOnly({
        name: reads ? "all read (slow)" : "20 read nothing (slow)",
        group: "200 sessions stream while 20 others are printed 8 MiB each",
        baseline: reads,
        compared: "full",
        unavailable: unavailableUws,
        run: slowReaders(reads)
      })
    )
  ]
}

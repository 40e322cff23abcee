import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { Schema } from "effect"
import { EntriesResult } from "#schemas/agents/ToolCall.ts"
import type { ToolRunner } from "../tools/ToolRunner.ts"

const decode = Schema.decodeUnknownOption(EntriesResult)
const listMillis = 5_000

/** Files of the workspace to choose from, found the way the agent finds them; none where that fails. */
export const listFiles = async (runner: Pick<ToolRunner, "run">): Promise<ReadonlyArray<string>> => {
  const outcome = await runner.run(
    {
      callId: "@",
      method: "fs.glob",
      params: { pattern: "**/*", limit: agentLimits.globEntries },
      timeoutMs: listMillis
    },
    {
      signal: AbortSignal.timeout(listMillis),
      onOutput: () => undefined,
      approve: () => Promise.resolve("no")
    }
  )
  const found = outcome.ok ? decode(outcome.result) : undefined
  return found?._tag === "Some" ? found.value.entries : []
}

import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, sized } from "#bench/harness/Suite.ts"
import { staged } from "./Stages.ts"

const sessionsOf = (context: CaseContext): number => sized(context, { tiny: 24, full: 19_000 })

/**
 * `kill -9` of a server with sessions that are idle, in the middle of an answer, or waiting for their client's tools;
 * then its restart, with every client trying again. It ends when all are resumed; afterwards every prompt has to come
 * to its end with every piece of its answer once and in order, and no call asked for under another id.
 */
export const resumeStorm = staged("ours", sessionsOf, async ({ context, load, server }) => {
  const sessions = sessionsOf(context)
  const half = sized(context, { tiny: 4, full: 500 })
  const sockets = load(sessions)
  sockets.tell({ do: "attach" })
  await sockets.until(({ attached }) => attached === sessions, 120_000)
  const calling = { calls: 2, tool: "read", pieces: 4, everyMillis: 50 } as const
  const overMillis = sized(context, { tiny: 10, full: 1_000 })
  sockets.tell({ do: "prompt", script: calling, from: 0, count: half, overMillis })
  await sockets.until(({ holding }) => holding === half, 30_000)
  const speaking = sized(context, {
    tiny: { pieces: 20, everyMillis: 40 },
    full: { pieces: 40, everyMillis: 250 }
  })
  sockets.tell({ do: "prompt", script: speaking, from: half, count: half, overMillis })
  await sockets.until((now) => now.speaking === half, 30_000)
  const { done } = await sockets.progress()
  // A busy machine may need longer for the tiny size than its answers take.
  if (done > 0 && context.size !== "tiny") throw new Error("A prompt was over before the server was killed")
  const { killedAt, readyAt } = await server.restart()
  const resumedAt = await sockets.until(
    (now) => now.resumed >= sessions && now.attached === sessions,
    120_000
  )
  const used = cpuMillis(server.pid())
  sockets.tell({ do: "answerCalls", from: 0, count: sessions })
  const wholeAt = await sockets.until(({ whole }) => whole === 2 * half, 60_000)
  const { gaps, retries } = await sockets.progress()
  return {
    work: sessions,
    elapsedMillis: resumedAt - killedAt,
    cpuMillis: used,
    figures: {
      "server ready ms": readyAt - killedAt,
      "all resumed ms": resumedAt - killedAt,
      "all prompts complete ms": wholeAt - killedAt
    },
    details: { replayGaps: gaps, retries }
  }
})

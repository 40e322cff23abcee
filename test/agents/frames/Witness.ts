import { assert } from "@effect/vitest"
import type { FrameClient } from "./FrameClient.ts"

/** Works on a plan as a correct client: its result has to be right beside any others. */
export const workOnce = async ({ socket }: FrameClient, id: string, calls: number): Promise<void> => {
  const from = socket.heard.length
  const steps = Array.from({ length: calls }, (_, index) => `read ${id}-${index}`)
  socket.say({ type: "prompt", id, text: ["wait 0", ...steps, "show"].join("\n") })
  const asked: Array<string> = []
  for (let index = 0; index < calls; index++) {
    const request = await socket.hear(
      ({ callId, type }) => type === "tool.request" && !asked.includes(String(callId)),
      from
    )
    const callId = String(request?.["callId"])
    asked.push(callId)
    assert.deepStrictEqual(request?.["params"], { path: `${id}-${index}` })
    const result = { content: `${id} has ${index}`, totalLines: 1, truncated: false }
    socket.say({ type: "tool.result", callId, ok: true, result, durationMs: 1 })
  }
  const done = await socket.hear(({ type }) => type === "prompt.done", from)
  assert.deepInclude(done, { id, status: "completed", turns: calls + 1, toolCalls: calls })
  const end = socket.heard.slice(from).findLast(({ kind }) => kind === "message_end")
  assert.include(JSON.stringify(end?.["content"]), `${id} has ${calls - 1}`)
}

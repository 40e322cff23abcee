import { assert, describe, it } from "@effect/vitest"
import { sessionResource } from "#src/agents/AgentRoutes.ts"
import type { SessionState } from "#streams/agents/SessionRecord.ts"
import { freshState } from "#test/agents/store/Sessions.ts"

const now = Date.parse("2026-11-21T12:00:00.000Z")
const minutes = 60_000

const resource = (changes: Partial<SessionState>, of: { ownerLives?: boolean; isNew?: boolean } = {}) =>
  sessionResource(
    {
      facts: {
        id: "ses_0000000000000000000000",
        userId: "usr",
        keyId: "key",
        root: "/home/ada/work",
        workspaceName: "work",
        startedAt: now - 60 * minutes
      },
      state: { ...freshState(now - minutes), ...changes },
      epoch: 1,
      steps: 0,
      ownerLives: true,
      isNew: false,
      ...of
    },
    now,
    15 * minutes
  )

const shown = (...asked: Parameters<typeof resource>) => {
  const { live, status } = resource(...asked)
  return [status, live]
}

describe("a session", () => {
  it("has the fields of the contract", () => {
    assert.deepStrictEqual(
      resource({
        status: "ended",
        endedAt: now,
        endReason: "client_bye",
        prompts: 2,
        toolCalls: 5,
        toolCallsDenied: 1,
        cost: "12500000000",
        promptTokens: 100,
        completionTokens: 20
      }),
      {
        id: "ses_0000000000000000000000",
        status: "ended",
        live: false,
        model: "m/one",
        thinking_level: "medium",
        workspace: { root: "/home/ada/work", name: "work" },
        client: { version: "1.0.0", platform: "linux-x64" },
        prompts: 2,
        tool_calls: 5,
        tool_calls_denied: 1,
        prompt_tokens: 100,
        completion_tokens: 20,
        cost_usd: 0.0125,
        started_at: "2026-11-21T11:00:00.000Z",
        last_seen_at: "2026-11-21T11:59:00.000Z",
        ended_at: "2026-11-21T12:00:00.000Z",
        end_reason: "client_bye"
      }
    )
  })

  it("is starting until its first client is attached, then idle, or running", () => {
    assert.deepStrictEqual(shown({}, { isNew: true }), ["starting", true])
    assert.deepStrictEqual(shown({}), ["idle", true])
    assert.deepStrictEqual(shown({ status: "running" }), ["running", true])
  })

  it("is detached without a client, and live for 15 minutes more", () => {
    assert.deepStrictEqual(shown({ detachedAt: now - minutes }), ["detached", true])
    assert.deepStrictEqual(shown({ status: "running", detachedAt: now - 14.99 * minutes }), [
      "detached",
      true
    ])
    assert.deepStrictEqual(shown({ detachedAt: now - 15 * minutes }), ["detached", false])
  })

  it("has nobody attached any more when its process has died", () => {
    assert.deepStrictEqual(shown({ status: "running" }, { ownerLives: false }), ["detached", true])
    assert.deepStrictEqual(shown({ lastSeenAt: now - 16 * minutes }, { ownerLives: false, isNew: true }), [
      "detached",
      false
    ])
  })
})

import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { AgentClient, type Doing } from "./AgentClient.ts"

/** Sessions on a whole server in this process, with the sandbox's scripted coding model. */
export interface Room {
  readonly url: string
  readonly adminKey: string
  readonly caller: (usd: number) => Promise<Caller>
  readonly open: (key: string, hello?: object, doing?: Doing) => Promise<AgentClient>
}

/** Short waits, so that what has to be waited for can be. */
export const roomLayer = TestServer.own({
  limits: {
    agentRetryMillis: 1,
    agentCancelMillis: 300,
    agentTurns: 6,
    agentCallGraceMillis: 100,
    usageWaitMillis: 500
  }
})

export const inRoom = (run: (room: Room) => Promise<void>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() =>
      run({
        url,
        adminKey,
        caller: (usd) => makeCaller({ url, adminKey: () => adminKey }, usd),
        open: (key, hello = {}, doing) =>
          AgentClient.open(url, key, { model: "sandbox/coder", ...hello }, doing)
      })
    )
  )

import type { ServerBye } from "#schemas/agents/ServerFrame.ts"

/** After these there is nothing to come back to by itself. */
const final: ReadonlyArray<ServerBye["reason"]> = ["revoked", "ended", "client_bye"]

/** The goodbye to a client that is detached. */
export const byeFrame = (reason: ServerBye["reason"], retryAfterMs?: number): string =>
  JSON.stringify({
    type: "bye",
    reason,
    resumable: !final.includes(reason),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs })
  })

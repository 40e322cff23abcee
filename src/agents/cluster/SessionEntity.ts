import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * The door to a session from other machines: whoever holds the lock of its shard answers. Messages are volatile: what
 * has to last is in the session's steps.
 */
export const SessionEntity = Entity.make("AgentSession", [
  /** Where the session's home takes clients of other machines. */
  Rpc.make("Home", { success: Schema.Struct({ host: Schema.String, port: Schema.Int }) }),
  /** Ends the session, as its owner asked. */
  Rpc.make("End")
])

import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { SessionId } from "#schemas/core/Ids.ts"

/**
 * The door to the sessions of one shard from other machines: whoever holds the lock of the shard answers. One for each
 * shard and not for each session, whose 15 KB would be four times what an idle session takes. Messages are volatile: what
 * has to last is in the steps of sessions.
 */
export const ShardEntity = Entity.make("AgentHome", [
  /** Where the shard's home takes clients of other machines. */
  Rpc.make("Where", { success: Schema.Struct({ host: Schema.String, port: Schema.Int }) }),
  /** Ends a session, as its owner asked. */
  Rpc.make("End", { payload: { sessionId: SessionId } })
])

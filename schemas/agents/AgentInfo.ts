import { Schema } from "effect"
import { AgentBilling, AgentModel } from "./ServerFrame.ts"
import { toolNames } from "./ToolCall.ts"

/** The facts that a client needs before it begins. Source: contract/agents#gateway-info. */
export const AgentInfo = Schema.Struct({
  protocol: Schema.Literal(1),
  gateway: Schema.Struct({
    url: Schema.String.annotate({ description: "The WebSocket's address, ws:// or wss://" }),
    path: Schema.String,
    auth: Schema.String.annotate({ description: "How the upgrade request says who asks" })
  }),
  tools: Schema.Array(Schema.Literals(toolNames)),
  billing: AgentBilling.annotate({ description: "How the default model would be paid for" }),
  default_model: Schema.NullOr(Schema.String).annotate({
    description: "The first that the key can pay for, else a free one; null: there is none"
  }),
  models: Schema.Array(AgentModel).annotate({
    description: "Tool-capable models that the key may run, and collections with such a member"
  }),
  downloads: Schema.Array(
    Schema.Struct({
      arch: Schema.String,
      label: Schema.String,
      filename: Schema.String,
      url: Schema.String.annotate({ description: "A path on this server" }),
      size_bytes: Schema.Int,
      sha256: Schema.String
    })
  ),
  downloads_available: Schema.Boolean,
  downloads_note: Schema.NullOr(Schema.String),
  install: Schema.Struct({ source: Schema.String, binary: Schema.String }).annotate({
    description: "Commands; binary is empty where nothing can be downloaded"
  })
}).annotate({ identifier: "AgentInfo", description: "The agent gateway, for this key" })
export type AgentInfo = typeof AgentInfo.Type

import { Layer } from "effect"
import { documentRoute, referenceRoute } from "#src/docs/page/ReferencePage.ts"
import { protocolSchema } from "./ProtocolSchema.ts"
import { protocolPage } from "./ReferencePage.ts"

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", "/docs/agent"],
  ["GET", "/docs/agent.json"]
] as const

/** The reference of the agent protocol, for people and for programs: made from the schemas, once. */
export const layer = Layer.suspend(() =>
  Layer.mergeAll(referenceRoute(protocolPage), documentRoute("/docs/agent.json", protocolSchema()))
)

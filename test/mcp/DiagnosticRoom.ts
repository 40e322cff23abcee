import { Effect, Layer } from "effect"
import { HttpApi } from "effect/http-api"
import { anyKey } from "#src/accounts/Admission.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import type { McpEndpoint } from "#src/infra/mcp/McpEndpoint.ts"
import { mcpRoutes } from "#src/infra/mcp/McpRoutes.ts"
import type { Room } from "#src/Room.ts"
import { rooms } from "#src/Rooms.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"

/** Ids of sessions that were ended. */
export const endedSessions = new Set<string>()

/** The two kinds of endpoints that rooms have: one without sessions that takes plain bodies, one with sessions and no such bodies. */
const stateless: McpEndpoint = {
  paths: ["/mcp", "/api/v1/mcp"],
  server: () => diagnosticServer,
  access: anyKey,
  maxBodyBytes: 80 * 1024 * 1024,
  tooLarge: "body: at most 83886080 bytes; larger files go to POST /attachments",
  callMillis: 300,
  plain: ({ bytes, contentType, read }, { idempotencyKey, key }) =>
    Effect.succeed({
      status: 201,
      headers: [["X-Plain", "yes"]],
      body: JSON.stringify({ json: read, bytes, contentType, idempotencyKey, keyId: key.keyId })
    })
}

const withSessions: McpEndpoint = {
  paths: ["/api/mcp"],
  server: () => diagnosticServer,
  access: anyKey,
  maxBodyBytes: 1024 * 1024,
  tooLarge: "body: at most 1048576 bytes",
  callMillis: 120_000,
  sessions: {
    issue: (key) => Effect.succeed(`session-of-${key.keyId}`),
    isOpen: (session, key) =>
      Effect.succeed(session === `session-of-${key.keyId}` && !endedSessions.has(session))
  }
}

const diagnostic: Room = {
  name: "diagnostic",
  needs: [],
  api: HttpApi.make("signalbox"),
  rawApi: HttpApi.make("signalbox"),
  migrations: { postgres: [], clickhouse: [] },
  commands: () => Promise.resolve([]),
  server: () =>
    Promise.resolve({
      served: Layer.empty,
      raw: Layer.merge(RawRoutes.addRaw(mcpRoutes(stateless)), RawRoutes.addRaw(mcpRoutes(withSessions))),
      paths: []
    })
}

/** The rooms of the server, whose migrations the stores of tests have, and the room of the tools. */
export const diagnosticRooms: ReadonlyArray<Room> = [...rooms, diagnostic]

import { HttpApi } from "effect/http-api"
import { AgentsRoomApi } from "#schemas/agents/AgentsRoomApi.ts"
import type { Room } from "#src/Room.ts"
import { agents as tables } from "./migrations/postgres/0009_Agents.ts"
import { plannedCreates } from "./migrations/postgres/0041_PlannedCreates.ts"

/** Sessions of coding agents. */
export const agents = {
  name: "agents",
  needs: ["clickhouse"],
  api: AgentsRoomApi,
  rawApi: HttpApi.make("signalbox"),
  migrations: {
    postgres: [tables, plannedCreates],
    clickhouse: []
  },
  commands: async () => [],
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"agents">

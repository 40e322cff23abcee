import { HttpApi } from "effect/http-api"
import type { Room } from "#src/Room.ts"
import { NotesRoomApi } from "./NotesApi.ts"

/** A room as small as one can be: a noun with its table, a route of its own, a check. */
export const notes = (migrationId: number) =>
  ({
    name: "notes",
    needs: [],
    api: NotesRoomApi,
    rawApi: HttpApi.make("signalbox"),
    migrations: {
      postgres: [
        {
          id: migrationId,
          name: "notes",
          statements: ["CREATE TABLE notes (id text PRIMARY KEY, user_id text NOT NULL, text text NOT NULL)"]
        }
      ],
      clickhouse: []
    },
    commands: async () => (await import("./Commands.ts")).commands,
    server: async () => (await import("./Server.ts")).server
  }) as const satisfies Room<"notes">

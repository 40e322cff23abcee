import { HttpApi } from "effect/http-api"
import type { Room } from "#src/Room.ts"
import { NotesRoomApi } from "./Note.ts"

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
          statements: [
            `CREATE TABLE notes (
              id text PRIMARY KEY, user_id text NOT NULL REFERENCES users (id), text text NOT NULL, pinned boolean NOT NULL,
              created_at timestamptz NOT NULL DEFAULT now(), deleted_at timestamptz,
              changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
            "CREATE INDEX notes_changed ON notes (changed)",
            `CREATE TRIGGER notes_mark_changed BEFORE INSERT OR UPDATE ON notes
              FOR EACH ROW EXECUTE FUNCTION mark_changed()`
          ]
        }
      ],
      clickhouse: []
    },
    commands: async () => (await import("./Commands.ts")).commands,
    server: async () => (await import("./Server.ts")).server
  }) as const satisfies Room<"notes">

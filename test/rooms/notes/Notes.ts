import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import { NoteRow, NotesRoomApi } from "./Note.ts"

const notesMax = 3

const own = <A, E>(use: (userId: string) => Effect.Effect<A, E>) =>
  CurrentKey.pipe(
    Effect.flatMap(({ ownerId }) => use(ownerId)),
    storeAway
  )

const group = HttpApiBuilder.group(
  NotesRoomApi,
  "notes",
  Effect.fnUntraced(function* (handlers) {
    const options = {
      name: "notes",
      title: "Note",
      model: NoteRow,
      ids: "not",
      indexes: {},
      gone: "deleted_at"
    }
    const notes = yield* CachedTable.make(options)
    return handlers.handleAll({
      listNotes: () => own((userId) => Effect.succeed({ notes: notes.list(userId) })),
      createNote: ({ payload: { pinned = false, text } }) =>
        own((userId) => notes.insertFor(userId, { text, pinned }, notesMax)),
      readNote: ({ params }) => own((userId) => notes.find(params.id, userId)),
      updateNote: ({ params, payload }) => own((userId) => notes.update(params.id, userId, payload)),
      deleteNote: ({ params }) =>
        Effect.as(
          own((userId) => notes.remove(params.id, userId)),
          { deleted: true as const }
        )
    })
  })
)

export const layer = Layer.merge(
  HttpApiBuilder.layer(NotesRoomApi).pipe(Layer.provide(group)),
  Sweep.layer("notes", "deleted_at")
)

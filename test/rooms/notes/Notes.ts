import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import { NoteRow, NotesRoomApi } from "./Note.ts"

const notesMax = 3

const owner = Effect.map(CurrentKey, ({ userId }) => userId)

const group = HttpApiBuilder.group(
  NotesRoomApi,
  "notes",
  Effect.fnUntraced(function* (handlers) {
    const notes = yield* CachedTable.make({
      name: "notes",
      title: "Note",
      model: NoteRow,
      ids: "not",
      indexes: {},
      gone: "deleted_at"
    })
    return handlers.handleAll({
      listNotes: () => Effect.map(owner, (userId) => ({ notes: notes.list(userId) })),
      createNote: ({ payload: { pinned = false, text } }) =>
        owner.pipe(
          Effect.flatMap((userId) => notes.insertFor(userId, { text, pinned }, notesMax)),
          storeAway
        ),
      readNote: ({ params }) => owner.pipe(Effect.flatMap((userId) => notes.find(params.id, userId))),
      updateNote: ({ params, payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => notes.update(params.id, userId, payload)),
          storeAway
        ),
      deleteNote: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => notes.remove(params.id, userId)),
          storeAway,
          Effect.as({ deleted: true as const })
        )
    })
  })
)

export const layer = Layer.merge(
  HttpApiBuilder.layer(NotesRoomApi).pipe(Layer.provide(group)),
  Sweep.layer("notes", "deleted_at")
)

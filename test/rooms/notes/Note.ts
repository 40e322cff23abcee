import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization } from "#schemas/core/Authorization.ts"
import { ErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import { idSchema, PathId } from "#schemas/core/Ids.ts"
import { JsonBody } from "#schemas/core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven, shape } from "#schemas/core/Noun.ts"
import { Conflict, NotFound } from "#schemas/core/Problem.ts"
import { line } from "#schemas/core/Text.ts"

/** A row of `notes`. */
export class NoteRow extends Model.Class<NoteRow>("NoteRow")({
  id: made(idSchema("not", "note")),
  user_id: hidden,
  text: given(Schema.String, line(1, 1_000)),
  pinned: maybeGiven(Schema.Boolean, Schema.Boolean, { default: false }),
  createdAt: madeAt
}) {}

const Note = shape("Note", NoteRow.json, "A note")
/** as JSON */
export type Note = typeof Note.Encoded
const NewNote = shape("NewNote", NoteRow.jsonCreate)
const NoteChange = shape("NoteChange", NoteRow.jsonUpdate)
const NoteList = Schema.Struct({ notes: Schema.Array(Note) })
const Deleted = Schema.Struct({ deleted: Schema.Literal(true) })
const one = { params: { id: PathId }, error: NotFound.plain }

class NotesApi extends HttpApiGroup.make("notes")
  .add(
    HttpApiEndpoint.get("listNotes", "/notes", { success: NoteList }).annotate(OpenApi.Summary, "List notes"),
    HttpApiEndpoint.post("createNote", "/notes", {
      payload: NewNote,
      success: Note.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a note"),
    HttpApiEndpoint.get("readNote", "/notes/:id", { ...one, success: Note }).annotate(
      OpenApi.Summary,
      "Read a note"
    ),
    HttpApiEndpoint.patch("updateNote", "/notes/:id", { ...one, payload: NoteChange, success: Note })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a note"),
    HttpApiEndpoint.delete("deleteNote", "/notes/:id", { ...one, success: Deleted }).annotate(
      OpenApi.Summary,
      "Delete a note"
    )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .prefix("/api/v1") {}

export class NotesRoomApi extends HttpApi.make("signalbox").add(NotesApi) {}

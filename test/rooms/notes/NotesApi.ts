import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "#schemas/core/Authorization.ts"
import { ErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import { JsonBody } from "#schemas/core/JsonBody.ts"

const Note = Schema.Struct({ id: Schema.String, text: Schema.String })
export type Note = typeof Note.Type

class Notes extends HttpApiGroup.make("notes")
  .add(
    HttpApiEndpoint.get("listNotes", "/notes", {
      success: Schema.Struct({ notes: Schema.Array(Note) })
    }).annotate(OpenApi.Summary, "List notes"),
    HttpApiEndpoint.post("createNote", "/notes", {
      payload: Schema.Struct({ text: Schema.String }),
      success: Note.pipe(HttpApiSchema.status(201))
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a note"),
    HttpApiEndpoint.delete("deleteNote", "/notes/:id", {
      params: { id: Schema.String },
      success: Schema.Struct({ deleted: Schema.Literal(true) })
    }).annotate(OpenApi.Summary, "Delete a note")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .prefix("/api/v1") {}

export class NotesRoomApi extends HttpApi.make("signalbox").add(Notes) {}

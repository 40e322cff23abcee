import { Argument } from "effect/cli"
import { id, noun, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import type { Note } from "./Note.ts"
import { notesOf } from "./NotesClient.ts"

const note = id("Id of the note (not_…)")
const text = { text: Argument.String("text") }
const kept = ({ text }: Pick<Note, "text">) => `Kept: ${text}`
const deleted = () => "Deleted"
const rows = ({ notes }: { readonly notes: ReadonlyArray<Pick<Note, "id" | "text" | "pinned">> }) =>
  tableOf(["id", "text", "pinned"], notes)

export const commands = [
  noun("notes", "List, make, change and delete notes", [
    verb("list", "List notes", {}, (to) => notesOf(to).listNotes(), rows),
    verb("create", "Make a note", text, (to, payload) => notesOf(to).createNote({ payload }), kept),
    verb(
      "update",
      "Change a note",
      { ...note, ...text },
      (to, { id, text }) => notesOf(to).updateNote({ params: { id }, payload: { text } }),
      kept
    ),
    verb("delete", "Delete a note", note, (to, params) => notesOf(to).deleteNote({ params }), deleted)
  ])
] as const

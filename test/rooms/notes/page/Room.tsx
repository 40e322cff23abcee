/** @jsxImportSource preact */
import { useReducer, useState } from "preact/hooks"
import { useAnswer } from "#src/console/page/api/UseAnswer.ts"
import { Dialog } from "#src/console/page/parts/Dialog.tsx"
import { Form, TextField } from "#src/console/page/parts/Form.tsx"
import { Heading } from "#src/console/page/parts/Heading.tsx"
import { Table } from "#src/console/page/parts/Table.tsx"
import { useChange } from "#src/console/page/parts/UseChange.ts"
import type { Room } from "#src/console/page/view/Rooms.ts"
import type { Note } from "../Note.ts"

const path = "/api/v1/notes"

const Notes = () => {
  const [since, onChanged] = useReducer((count: number) => count + 1, 0)
  const { data } = useAnswer<{ readonly notes: ReadonlyArray<Note> }>(path, 60_000, { since })
  const [text, setText] = useState("")
  const change = useChange()
  const make = () => change.run((ask) => ask(path, { method: "POST", json: { text } }).then(onChanged))
  const remove = ({ id }: Note) => (
    <Dialog
      action="Delete"
      question="It cannot be brought back."
      yes="Delete it"
      run={(ask) => ask(`${path}/${id}`, { method: "DELETE" }).then(onChanged)}
    />
  )
  const columns = [
    { title: "Text", of: (note: Note) => note.text },
    { title: "Actions", of: remove }
  ]
  return (
    <>
      <Heading>Notes</Heading>
      <Table title="Kept" rows={data?.notes} keyOf={({ id }) => id} columns={columns} empty="No notes yet." />
      <Form change={change} submit="Make a note" onSubmit={() => void make()}>
        <TextField label="Text" name="text" required value={text} onInput={setText} />
      </Form>
    </>
  )
}

export const room: Room = {
  name: "notes",
  tile: { order: 9, title: "Notes", purpose: "what is to be kept", components: ["notes"] },
  page: { path: "notes", title: "Notes", order: 9, params: [], Page: Notes, probe: { path } }
}

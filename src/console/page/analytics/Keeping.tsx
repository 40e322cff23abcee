import type { Site } from "#schemas/analytics/Site.ts"
import { useState } from "preact/hooks"
import { Dialog } from "../parts/Dialog.tsx"
import { Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"

/** How long statistics are kept, and their end before that. */
export const Keeping = ({ site }: { readonly site: Site }) => {
  const change = useChange()
  const [days, setDays] = useState(site.retentionDays?.toString() ?? "")
  const [done, setDone] = useState<string>()
  const save = (): void => {
    setDone(undefined)
    const retentionDays = days.trim() === "" ? null : Number(days)
    void change.run(async (ask) => {
      await ask(`/api/v1/sites/${site.id}`, { method: "PATCH", json: { retentionDays } })
      setDone(retentionDays === null ? "All days are kept." : "Older days are deleted from now on.")
    })
  }
  return (
    <section>
      <h2>How long statistics are kept</h2>
      <Form change={change} class="site-form" label="Retention" submit="Save" onSubmit={save}>
        <TextField
          label="Days"
          hint="1 to 3650 before today; empty for all. Older ones are deleted for good"
          name="retentionDays"
          type="number"
          min={1}
          max={3650}
          value={days}
          onInput={setDays}
        />
      </Form>
      <Dialog
        action="Reset statistics"
        question={`All events and visits of ${site.name} up to now are deleted for good. Counting goes on.`}
        yes="Delete them"
        run={async (ask) => {
          await ask(`/api/v1/sites/${site.id}/reset`, { method: "POST" })
          setDone("Counting has begun anew. The figures follow within half a minute.")
        }}
      />
      {done !== undefined && <p role="status">{done}</p>}
    </section>
  )
}

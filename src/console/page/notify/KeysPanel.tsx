import type { CreatedProjectKey, ProjectKey } from "#schemas/notify/ProjectKey.ts"
import type { Project } from "#schemas/notify/Project.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatInstant } from "../figures/Format.ts"
import { Code } from "../parts/Code.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"
import { Items } from "./Items.tsx"

const path = "/api/v1/project-keys"
const refreshMillis = 30_000

/** The keys by which programs send: what each covers, and a form for another. */
export const KeysPanel = ({ projects }: { readonly projects: ReadonlyArray<Project> }) => {
  const [since, setSince] = useState(0)
  const { data } = useAnswer<{ readonly keys: ReadonlyArray<ProjectKey> }>(path, refreshMillis, { since })
  const onChanged = (): void => setSince((before) => before + 1)
  const names = new Map(projects.map(({ id, name }) => [id, name]))
  const coverOf = ({ projects: ids }: ProjectKey): string =>
    ids === "all" ? "all projects" : ids.map((id) => names.get(id) ?? "a deleted one").join(", ")
  return (
    <>
      <Items<ProjectKey>
        title="Project keys"
        items={data?.keys}
        keyOf={({ id }) => id}
        nameOf={({ name }) => name}
        factsOf={(key) => [`${key.prefix}…`, `sends to ${coverOf(key)}`, ...endOf(key)]}
        empty="No keys yet. Programs send with them."
        actionOf={({ id, name }) => (
          <Dialog
            action="Revoke"
            question={`${name} works nowhere within a second.`}
            yes="Revoke"
            no="Keep"
            run={async (ask) => {
              await ask(`${path}/${id}`, { method: "DELETE" })
              onChanged()
            }}
          />
        )}
      />
      <details class="new-key">
        <summary>New project key</summary>
        <NewKey projects={projects} onMade={onChanged} />
      </details>
    </>
  )
}

const endOf = ({ expiresAt }: ProjectKey): ReadonlyArray<string> =>
  expiresAt === null ? [] : [`until ${formatInstant(expiresAt)}`]

interface NewKeyProps {
  readonly projects: ReadonlyArray<Project>
  onMade(): void
}

const NewKey = ({ onMade, projects }: NewKeyProps) => {
  const change = useChange()
  const [name, setName] = useState("")
  const [until, setUntil] = useState("")
  const [chosen, setChosen] = useState<ReadonlySet<string>>()
  const [made, setMade] = useState<CreatedProjectKey>()
  const onSubmit = (): void => {
    const json = {
      name,
      projects: chosen === undefined ? "all" : [...chosen],
      ...(until !== "" && { expiresAt: `${until}T00:00:00Z` })
    }
    void change.run(async (ask) => {
      setMade(await ask(path, { method: "POST", json }))
      setName("")
      onMade()
    })
  }
  const choose = (id: string, isChosen: boolean): void => {
    const others = [...(chosen ?? [])].filter((one) => one !== id)
    setChosen(new Set(isChosen ? [...others, id] : others))
  }
  return (
    <Form class="site-form" label="New project key" change={change} submit="Make the key" onSubmit={onSubmit}>
      <TextField label="Name" required maxLength={100} name="name" value={name} onInput={setName} />
      <TextField
        label="Ends"
        hint="As that day begins in UTC; empty: never"
        type="date"
        name="expiresAt"
        value={until}
        onInput={setUntil}
      />
      <fieldset class="field">
        <legend>Sends to</legend>
        <Check isOn={chosen === undefined} onChange={(isOn) => setChosen(isOn ? undefined : new Set())}>
          All projects, later ones too
        </Check>
        {chosen !== undefined &&
          projects.map((project) => (
            <Check
              key={project.id}
              isOn={chosen.has(project.id)}
              onChange={(isOn) => choose(project.id, isOn)}
            >
              {project.name}
            </Check>
          ))}
      </fieldset>
      {made !== undefined && (
        <div role="status">
          <p>
            <strong>The key of {made.name}, shown now and never again:</strong>
          </p>
          <Code of="key" text={made.key} />
        </div>
      )}
    </Form>
  )
}

interface CheckProps {
  readonly isOn: boolean
  onChange(isOn: boolean): void
  readonly children: string
}

const Check = ({ children, isOn, onChange }: CheckProps) => (
  <label class="check">
    <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
    {children}
  </label>
)

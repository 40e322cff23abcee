import type { Project } from "#schemas/notify/Project.ts"
import { useState } from "preact/hooks"
import { Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"

interface NewProjectProps {
  onMade(project: Project): void
}

/** Makes a project: the name is enough. */
export const NewProject = ({ onMade }: NewProjectProps) => {
  const change = useChange()
  const [fields, setFields] = useState({ name: "", slug: "" })
  const onSubmit = (): void => {
    const { name, slug } = fields
    const json = { name, ...(slug.trim() !== "" && { slug }) }
    void change.run(async (ask) => onMade(await ask("/api/v1/projects", { method: "POST", json })))
  }
  const text = (name: keyof typeof fields) => ({
    name,
    value: fields[name],
    onInput: (typed: string): void => setFields({ ...fields, [name]: typed })
  })
  return (
    <Form class="site-form" label="New project" change={change} submit="Make the project" onSubmit={onSubmit}>
      <TextField
        label="Name"
        hint="People see it when they join"
        required
        maxLength={100}
        {...text("name")}
      />
      <TextField
        label="Slug"
        hint="Its name in requests; made from the name where it is empty"
        maxLength={63}
        autocapitalize="off"
        placeholder="backups"
        {...text("slug")}
      />
    </Form>
  )
}
